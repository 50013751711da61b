"""The lock of a pipeline run: who computes the tables of a lake, and until when that counts.

The run renews it while it works.  A run that was killed stops renewing it, so it expires and the
next run takes it over.
"""

from __future__ import annotations

import msgspec

from penstock.domain.datetimes import moment_of
from penstock.domain.limits import MINUTE

EXPIRES_AFTER_MS = 2 * MINUTE  # also how far the clocks of two machines may differ
RENEWED_EVERY_MS = 20_000


class RunLock(msgspec.Struct, frozen=True, kw_only=True):
    owner: str  # name of the user
    host: str
    pid: int
    taken_at: int
    expires_at: int
    is_brief: bool = False  # held for seconds only: others wait for it even without --wait

    def __str__(self) -> str:
        since = moment_of(self.taken_at).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{self.owner} on {self.host} (process {self.pid}), since {since}"


def new_lock(*, owner: str, host: str, pid: int, now: int, is_brief: bool = False) -> RunLock:
    return RunLock(
        owner=owner,
        host=host,
        pid=pid,
        taken_at=now,
        expires_at=now + EXPIRES_AFTER_MS,
        is_brief=is_brief,
    )


def renew(lock: RunLock, *, now: int) -> RunLock:
    return msgspec.structs.replace(lock, expires_at=now + EXPIRES_AFTER_MS)


def is_expired(lock: RunLock, *, now: int) -> bool:
    return lock.expires_at <= now
