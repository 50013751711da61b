"""Which application declared recurring work, and when work that it no longer declares is retired.

Versions of an application run side by side during a deployment, and the old one still declares what
the new one has dropped.  Each worker registers with its application's name and a digest of its
declarations: while a worker of the same application with another digest is alive, nothing is
retired.  So declarations do not flap, and in the end those of the remaining version stay.

Work without an owner was created by an operator and is never retired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from penstock.domain.limits import MINUTE
from penstock.domain.schedule.schedule import Schedule
from penstock.domain.worker import Worker, is_alive

# Labels of a worker.
APPLICATION = "penstock.application"
DECLARES = "penstock.recurring"

RETIRED = "recurring_retired"  # a kind of fact
# A worker declares before it registers; until then, other workers must not retire its declarations.
YOUNG_MS = MINUTE


def labels(owner: str, declared: Iterable[str]) -> dict[str, str]:
    """The labels of a worker with these declarations."""
    return {APPLICATION: owner, DECLARES: digest(declared)}


def digest(declared: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(set(declared))).encode()).hexdigest()[:16]


def is_dropped(schedule: Schedule, *, owner: str, declared: Collection[str], now: int) -> bool:
    """Whether this application declared it before, and no longer does."""
    is_mine = schedule.owner == owner and schedule.name not in declared
    return is_mine and now - schedule.created_at >= YOUNG_MS


def is_contested(
    workers: Iterable[Worker], *, owner: str, declared: Iterable[str], now: int
) -> bool:
    """Whether another version of the application, with other declarations, is alive."""
    mine = digest(declared)
    return any(
        worker.labels.get(APPLICATION) == owner and worker.labels.get(DECLARES) != mine
        for worker in workers
        if is_alive(worker, now=now)
    )
