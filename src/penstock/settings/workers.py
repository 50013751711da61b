"""Settings of workers, of the task resources for external workers, and of the autoscaler."""

from __future__ import annotations

from typing import Annotated

import msgspec

from penstock.domain.described import about, within
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, SECOND
from penstock.domain.queue.queue import check_name
from penstock.domain.worker import BEAT_MS, VALID_MS

_MIB = 1024 * 1024


class WorkersSettings(msgspec.Struct, frozen=True, kw_only=True):
    valid_ms: Annotated[
        int, within(SECOND, HOUR, "how long a worker counts as alive after its last beat")
    ] = VALID_MS
    beat_ms: Annotated[int, within(100, HOUR, "interval between a worker's beats")] = BEAT_MS
    reap_interval_ms: Annotated[
        int, within(10, HOUR, "interval between searches for lost workers")
    ] = 2 * SECOND
    embedded: (
        Annotated[
            int,
            within(
                0,
                1_000,
                "number of workers inside the server; unset: one per four cores, at "
                "least one; 0: none",
            ),
        ]
        | None
    ) = None
    max_jobs: (
        Annotated[
            int,
            within(
                1,
                1_000_000_000,
                "replace an embedded worker's process after this many jobs; unset: never",
            ),
        ]
        | None
    ) = None
    max_memory_bytes: (
        Annotated[
            int,
            within(
                16 * _MIB,
                1024 * 1024 * _MIB,
                "replace an embedded worker's process whose resident memory exceeds "
                "this after a job; unset: never",
            ),
        ]
        | None
    ) = None
    modules: Annotated[
        str | None, about("applications that embedded workers run: comma-separated module:app")
    ] = None

    @property
    def grace_ms(self) -> int:
        """How long a worker keeps its task leases after it stops counting as alive.

        So the loss of the worker is noticed, and counted, before its leases expire.
        """
        return 2 * self.reap_interval_ms + 10 * SECOND


class TasksSettings(msgspec.Struct, frozen=True, kw_only=True):
    queue: Annotated[str, about("queue behind /v1/tasks")] = "tasks"
    timeout_ms: (
        Annotated[int, within(1, 366 * DAY, "time limit of one task; unset: no limit")] | None
    ) = None


class ScalingSettings(msgspec.Struct, frozen=True, kw_only=True):
    fleets_file: Annotated[
        str | None, about("TOML file that declares fleets; if set, the server also scales them")
    ] = None


def check_workers(workers: WorkersSettings, tasks: TasksSettings) -> None:
    """Raise InvalidRequest for invalid or contradictory values."""
    check_name(tasks.queue)
    if workers.beat_ms >= workers.valid_ms:
        raise InvalidRequest(
            f"workers.beat_ms ({workers.beat_ms} ms) must be less than workers.valid_ms "
            f"({workers.valid_ms} ms): otherwise every worker is lost between two beats"
        )
