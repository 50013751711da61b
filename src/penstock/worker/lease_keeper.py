"""Keeps leases: of all that is held, in one batch, at a third of the lease's time or sooner."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.domain.message.lease import Verb
from penstock.ports.work import WorkAct
from penstock.worker.running_job import Held

# A job that an operator cancels while it runs is noticed by an extension that fails.
NOTICE_MS = 3_000


class Keeper:
    def __init__(self, lease_ms: int) -> None:
        self._renew_ms = max(lease_ms // 3, 1)
        self._every_ms = min(self._renew_ms, NOTICE_MS)
        self.next_at = 0

    def due(self, held: Iterable[Held], *, now: int) -> list[Held]:
        """Those whose lease is to be prolonged now.  What came a moment ago can wait.

        Also those past their time limit that still run, although there is nothing to prolong.
        """
        if now < self.next_at:
            return []
        self.next_at = now + self._every_ms
        return [each for each in held if self._is_due(each, now=now)]

    def _is_due(self, each: Held, *, now: int) -> bool:
        if each.start_by is not None or each.owes_time_out:
            # As late as its lease allows: past its time limit an extension is a time-out.  One that
            # has not begun may still begin, one that was stopped may clean up first.
            return each.renewed_at <= now - self._renew_ms
        return each.fate is None and each.renewed_at <= now - self._every_ms // 3


def extension(held: Held, *, now: int) -> WorkAct:
    """Told to the store; the handler's word of how far it has come goes with it once.

    The time limit of a job that began later than it was claimed counts from now on.
    """
    is_start, held.is_late_start = held.is_late_start, False
    progress, held.progress = held.progress, None
    held.renewed_at = now
    return WorkAct(
        receipt=held.work.receipt,
        verb=Verb.EXTEND,
        delay_ms=held.lease_ms,
        progress=progress,
        is_start=is_start,
    )


def unsaid(held: Held, act: WorkAct) -> None:
    """Nobody has heard of it: what it told goes with the next one."""
    held.is_late_start = held.is_late_start or act.is_start
    if held.progress is None:
        held.progress = act.progress
