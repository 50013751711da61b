"""The acts of one exchange with a server: sent in several requests, answered in order.

A request may fail after others were answered.  Those answers count; the acts of the failed request
and of those after it are marked as `Unanswered`, so that the worker sends them again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from penstock.api.leases import ActResult, BatchAct
from penstock.client.remote.server import Remote
from penstock.domain.errors import PenstockError
from penstock.domain.message.lease import Verb
from penstock.worker.application import ActAnswer, Unanswered
from penstock.worker.claimed_job import JobAct

MAX_ACTS = 250  # per request: the server limits their number and size


class RemoteActs:
    """`places` are positions in the sequence of acts."""

    def __init__(self, remote: Remote, acts: Sequence[JobAct]) -> None:
        self._remote = remote
        self._acts = acts
        self._answers: dict[int, ActAnswer] = {}
        self.error: PenstockError | OSError | None = None  # the first request that failed

    def completions(self, queues: Collection[str]) -> dict[str, list[int]]:
        """The completions that may go with a claim, by queue; a server takes no others there."""
        found: dict[str, list[int]] = {}
        for place, act in enumerate(self._acts):
            if act.verb is Verb.COMPLETE and act.queue is not None and act.queue in queues:
                places = found.setdefault(act.queue, [])
                if len(places) < MAX_ACTS:
                    places.append(place)
        return found

    def receipts(self, places: Sequence[int]) -> list[str]:
        return [self._acts[place].receipt for place in places]

    def answer(self, places: Sequence[int], results: Sequence[ActResult]) -> None:
        for place, result in zip(places, results, strict=True):
            self._answers[place] = result if isinstance(result, PenstockError) else None

    def send_all_but(self, later: Collection[int] = ()) -> None:
        """Send the acts that have no answer yet; stops at the first request that fails."""
        places = [
            place
            for place in range(len(self._acts))
            if place not in later and place not in self._answers
        ]
        for start in range(0, len(places), MAX_ACTS):
            some = places[start : start + MAX_ACTS]
            try:
                results = self._remote.act_batch([_record(self._acts[place]) for place in some])
            except (PenstockError, OSError) as error:
                self.error = self.error or error
                return
            self.answer(some, results)

    def check(self) -> None:
        """Raises the error of a failed request, unless others were answered."""
        if self.error is not None and not self._answers:
            raise self.error

    def answers(self) -> list[ActAnswer]:
        missing = Unanswered(str(self.error))
        return [self._answers.get(place, missing) for place in range(len(self._acts))]


def _record(act: JobAct) -> BatchAct:
    match act.verb:
        case Verb.FAIL | Verb.TIME_OUT:
            return BatchAct(act.receipt, act.verb, error=act.text, retry_in_ms=act.delay_ms)
        case Verb.CRASH:
            return BatchAct(act.receipt, act.verb, error=act.text)
        case Verb.EXTEND:
            return BatchAct(
                act.receipt,
                act.verb,
                lease_ms=act.delay_ms,
                is_start=act.is_start or None,
                progress=None if act.progress is None else msgspec.Raw(act.progress.encode()),
            )
        case Verb.BURY | Verb.CANCEL:
            return BatchAct(act.receipt, act.verb, reason=act.text)
        case Verb.SNOOZE:
            return BatchAct(act.receipt, act.verb, delay_ms=act.delay_ms, reason=act.text)
        case Verb.RELEASE:
            return BatchAct(act.receipt, act.verb, delay_ms=act.delay_ms)
        case Verb.COMPLETE:
            return BatchAct(act.receipt, act.verb)
