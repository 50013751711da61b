"""Which application declared recurring work, and when what it no longer declares is retired.

Versions of an application run side by side during a deployment, and the old one still declares what
the new one has dropped.  Each worker is registered with its application's name and a digest of what
it declares: as long as a worker of the same application is alive with another digest, nothing is
retired.  So nothing flaps, and what is left at the end is what the remaining version declares.

Work without an owner was made by hand and is never retired.
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

RETIRED = "recurring_retired"  # a kind of facts
# A worker declares before it registers; until then no other worker may judge what it declared.
YOUNG_MS = MINUTE


def labels(owner: str, declared: Iterable[str]) -> dict[str, str]:
    """For the registration of a worker that declares this."""
    return {APPLICATION: owner, DECLARES: digest(declared)}


def digest(declared: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(set(declared))).encode()).hexdigest()[:16]


def dropped(schedule: Schedule, *, owner: str, declared: Collection[str], now: int) -> bool:
    """Declared by this application before, and not any more."""
    is_mine = schedule.owner == owner and schedule.name not in declared
    return is_mine and now - schedule.created_at >= YOUNG_MS


def is_contested(
    workers: Iterable[Worker], *, owner: str, declared: Iterable[str], now: int
) -> bool:
    """Is another version of the application at work, which may declare what this one does not?"""
    mine = digest(declared)
    return any(
        worker.labels.get(APPLICATION) == owner and worker.labels.get(DECLARES) != mine
        for worker in workers
        if is_alive(worker, now=now)
    )
