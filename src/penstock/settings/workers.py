"""Settings of workers, of the task resources for external workers, and of the autoscaler."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.domain.described import setting
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, SECOND
from penstock.domain.queue.queue import check_name
from penstock.domain.worker import BEAT_MS, VALID_MS

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class WorkersSettings:
    valid_ms: int = setting(
        VALID_MS, "how long a worker counts as alive after its last beat", SECOND, HOUR
    )
    beat_ms: int = setting(BEAT_MS, "interval between a worker's beats", 100, HOUR)
    reap_interval_ms: int = setting(
        2 * SECOND, "interval between searches for lost workers", 10, HOUR
    )
    embedded: int | None = setting(
        None,
        "number of workers inside the server; unset: one per four cores, at least one; 0: none",
        0,
        1_000,
    )
    max_jobs: int | None = setting(
        None,
        "replace an embedded worker's process after this many jobs; unset: never",
        1,
        1_000_000_000,
    )
    max_memory_bytes: int | None = setting(
        None,
        "replace an embedded worker's process whose resident memory exceeds "
        "this after a job; unset: never",
        16 * _MIB,
        1024 * 1024 * _MIB,
    )
    modules: str | None = setting(
        None, "applications that embedded workers run: comma-separated module:app"
    )
    reload: bool = setting(
        False,
        "for development: restart embedded workers when Python files below the working directory "
        "change",
    )

    @property
    def grace_ms(self) -> int:
        """How long a worker keeps its task leases after it stops counting as alive.

        So the loss of the worker is noticed, and counted, before its leases expire.
        """
        return 2 * self.reap_interval_ms + 10 * SECOND


@dataclass(frozen=True, kw_only=True)
class TasksSettings:
    queue: str = setting("tasks", "queue behind /v1/tasks")
    timeout_ms: int | None = setting(None, "time limit of one task; unset: no limit", 1, 366 * DAY)


@dataclass(frozen=True, kw_only=True)
class ScalingSettings:
    fleets_file: str | None = setting(
        None, "TOML file that declares fleets; if set, the server also scales them"
    )


def check_workers(workers: WorkersSettings, tasks: TasksSettings) -> None:
    """Raise InvalidRequest for invalid or contradictory values."""
    check_name(tasks.queue)
    if workers.beat_ms >= workers.valid_ms:
        raise InvalidRequest(
            f"workers.beat_ms ({workers.beat_ms} ms) must be less than workers.valid_ms "
            f"({workers.valid_ms} ms): otherwise every worker is lost between two beats"
        )
