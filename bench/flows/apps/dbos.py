"""A chain is one workflow of steps: that is how DBOS is used.  `python -m` is its worker."""

from __future__ import annotations

import os
import threading
from functools import cache

from dbos import DBOS, DBOSClient, DBOSConfig

from bench.jobs.board import ran

_URL = os.environ.get("BENCH_URL", "").replace("postgresql://", "postgresql+psycopg://")
_CONFIG: DBOSConfig = {"name": "bench", "system_database_url": _URL, "run_admin_server": False}
_QUEUE = "bench"


@DBOS.step()
def step(value: int, row: int) -> int:
    ran(row)
    return value + 1


@DBOS.workflow(name="run_chain")
def run_chain(first: int, size: int) -> int:
    value = 0
    for n in range(size):
        value = step(value, first + n)
    return value


@DBOS.workflow(name="member")
def member(row: int) -> int:
    ran(row)
    return row


@DBOS.workflow(name="run_group")
def run_group(first: int, size: int) -> int:
    handles = [DBOS.enqueue_workflow(_QUEUE, member, first + n) for n in range(size)]
    values = [handle.get_result(polling_interval_sec=0.05) for handle in handles]
    return step(sum(values), first + size)


@cache
def client() -> DBOSClient:
    return DBOSClient(system_database_url=_URL)


def prepare() -> None:
    DBOS(config=_CONFIG)
    DBOS.launch()
    DBOS.register_queue(_QUEUE, polling_interval_sec=0.05)
    DBOS.destroy()


def enqueue_chain(first: int, size: int) -> None:
    client().enqueue({"queue_name": _QUEUE, "workflow_name": "run_chain"}, first, size)


def enqueue_group(first: int, size: int) -> None:
    client().enqueue({"queue_name": _QUEUE, "workflow_name": "run_group"}, first, size)


if __name__ == "__main__":
    DBOS(config=_CONFIG)
    DBOS.launch()
    threading.Event().wait()
