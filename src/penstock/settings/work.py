"""What can be set about workers and about the tasks that other programs' workers take."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, SECOND
from penstock.domain.queue.queue import check_name
from penstock.domain.worker import BEAT_MS, VALID_MS

_MIB = 1024 * 1024


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    valid_ms: Annotated[
        int, Meta(ge=SECOND, le=HOUR, description="how long a worker is believed after each beat")
    ] = VALID_MS
    beat_ms: Annotated[int, Meta(ge=100, le=HOUR, description="how often our own workers beat")] = (
        BEAT_MS
    )
    reap_interval_ms: Annotated[
        int, Meta(ge=10, le=HOUR, description="how often lost workers are looked for")
    ] = 2 * SECOND
    embedded: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=1_000,
                description="workers inside the server; unset: a quarter of the cores, at least "
                "one; 0: none",
            ),
        ]
        | None
    ) = None
    max_jobs: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=1_000_000_000,
                description="jobs after which an embedded worker's process is replaced; "
                "unset: never",
            ),
        ]
        | None
    ) = None
    max_memory_bytes: (
        Annotated[
            int,
            Meta(
                ge=16 * _MIB,
                le=1024 * 1024 * _MIB,
                description="resident memory after a job above which an embedded worker's process "
                "is replaced; unset: never",
            ),
        ]
        | None
    ) = None
    modules: Annotated[
        str | None,
        Meta(description="what embedded workers run: module:app, several with commas between"),
    ] = None

    @property
    def grace_ms(self) -> int:
        """How much longer than a worker is believed the tasks stay with it.

        So it is the worker's loss that is noticed first, and counted as one, and not merely the end
        of a lease.
        """
        return 2 * self.reap_interval_ms + 10 * SECOND


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    queue: Annotated[str, Meta(description="the queue behind /v1/tasks")] = "tasks"
    timeout_ms: (
        Annotated[
            int, Meta(ge=1, le=366 * DAY, description="how long a task may take; unset: no limit")
        ]
        | None
    ) = None


def check_work(workers: Workers, tasks: Tasks) -> None:
    """Raises InvalidRequest."""
    check_name(tasks.queue)
    if workers.beat_ms >= workers.valid_ms:
        raise InvalidRequest(
            f"workers.beat_ms ({workers.beat_ms} ms) must be less than workers.valid_ms "
            f"({workers.valid_ms} ms), or every worker would be lost between two beats"
        )
