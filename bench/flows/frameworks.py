"""The frameworks that have flows, with the same stores and workers as in bench/jobs.

Procrastinate, RQ and Huey have no group with a callback that gets results.
"""

from __future__ import annotations

import sys
from typing import ClassVar

from bench.jobs.frameworks import (
    CeleryRedis,
    Framework,
    OnPostgres,
    PenstockPostgres,
    PenstockSqlite,
)


class FlowFramework(Framework):
    chains: ClassVar[int]  # as many as it runs in some seconds
    groups: ClassVar[int]  # 0: it has none

    @property
    def servers(self) -> list[int]:
        """The processes of its store."""
        return [server.pid for server in self._servers]


class SqliteFlows(PenstockSqlite, FlowFramework):
    note = "flows; penstock worker --slots 10"
    app = "bench.flows.apps.penstock"
    chains, groups = 400, 40


class SqliteSteps(SqliteFlows):
    name = "penstock steps (sqlite)"
    note = "a chain is one job of ten durable steps"
    app = "bench.flows.apps.steps.penstock"
    groups = 0


class PostgresFlows(PenstockPostgres, FlowFramework):
    note = "the same on PostgreSQL with its default settings"
    app = SqliteFlows.app
    chains, groups = 200, 20


class PostgresSteps(PostgresFlows):
    name = "penstock steps (postgresql)"
    note = "the same on PostgreSQL with its default settings"
    app = SqliteSteps.app
    groups = 0


class CeleryFlows(CeleryRedis, FlowFramework):
    note = "chain and chord; one prefork child, acks_late; results in Redis, appendfsync always"
    app = "bench.flows.apps.celery"
    chains, groups = 100, 10


class DbosFlows(OnPostgres, FlowFramework):
    name = "dbos (postgresql)"
    note = (
        "a chain is one workflow of ten steps, a group one that enqueues 100; its queue and its "
        "results are polled every 50 ms"
    )
    app = "bench.flows.apps.dbos"
    package = "dbos"
    chains, groups = 100, 5

    def worker(self) -> list[str]:
        return [sys.executable, "-m", self.app]


FLOW_FRAMEWORKS: tuple[type[FlowFramework], ...] = (
    SqliteFlows,
    PostgresFlows,
    CeleryFlows,
    SqliteSteps,
    PostgresSteps,
    DbosFlows,
)
