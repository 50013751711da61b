"""Whether jobs that name a route may be run now: their circuits are asked before, told afterwards.

    claimed ──▶ admit ──▶ run ──▶ ending ──▶ tell
                  └──▶ snoozed: the circuit is open, no attempt is spent

Once for all that came with a claim, and once for all that have ended.  Jobs without a route never
come here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from penstock.domain.circuit.circuit import Permit, Permitted, Reported, RequestOutcome
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.message.lease import Verb
from penstock.ports.work import WorkAct, WorkSource
from penstock.worker.handling import Ready
from penstock.worker.outcomes import NOT_COMMITTED
from penstock.worker.running_job import Held

_log = logging.getLogger("penstock.worker")

_LOOK_MS = 1_000  # so long nobody is asked again while no circuits are kept
_UNKNOWN_MS = 1_000  # … and jobs wait while nobody can say
_MOST_UNTOLD = 10_000


class Gate:
    def __init__(self, source: WorkSource) -> None:
        self._source = source
        self._permits: dict[str, Permitted] = {}  # by receipt, of those that were let through
        self._ended: list[Reported] = []  # not told yet
        self._held: set[str] = set()  # routes of which it was said that they are held
        self._ask_at = 0
        self._is_refused = False

    def admit(self, ready: Sequence[Ready], now: int) -> tuple[list[Ready], list[WorkAct]]:
        """Those that may run, and what is to be done with the others."""
        if now < self._ask_at:
            return list(ready), []
        works = (one.work for one in ready)
        jobs = {work.route: work.id for work in works if work.route is not None}
        try:
            permits = self._source.permits(jobs)
        except (StoreUnavailable, OSError) as error:
            return _without_answer(ready, error)
        except PenstockError as error:  # a server that does not know circuits, or not this key
            self._refused(error)
            permits = None
        if permits is None:
            self._ask_at = now + _LOOK_MS
            return list(ready), []
        return self._sort(ready, permits)

    def ending(self, held: Held, act: WorkAct, now: int) -> WorkAct:
        """What is to be done with one that ended so: a probe that failed loses no attempt."""
        permitted = self._permits.pop(held.work.receipt, None)
        if permitted is None:
            return act
        outcome = outcome_of(act)
        took_ms = now - held.started_at if held.started_at else 0
        self._ended.append(Reported(permitted, held.work.id, outcome, took_ms))
        if outcome is RequestOutcome.FAILURE and permitted.permit is Permit.PROBE:
            _log.info("a job of route %r was tried and failed: %s", permitted.pattern, act.text)
            return _snooze(held.work.receipt, permitted.retry_ms, act.text)
        return act

    def lost(self, held: Held) -> None:
        """Nobody will hear what became of it."""
        permitted = self._permits.pop(held.work.receipt, None)
        if permitted is not None:
            self._ended.append(Reported(permitted, held.work.id, None))

    def tell(self) -> None:
        """What could not be told is told with the next turn."""
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        try:
            self._source.report(ended)
        except (StoreUnavailable, OSError):
            self._ended = ended[-_MOST_UNTOLD:]
        except PenstockError as error:
            self._refused(error)

    def _sort(
        self, ready: Sequence[Ready], permits: Mapping[str, Permitted]
    ) -> tuple[list[Ready], list[WorkAct]]:
        go: list[Ready] = []
        back: list[WorkAct] = []
        probed: set[str] = set()
        for one in ready:
            route = one.work.route
            permitted = permits.get(route) if route is not None else None
            if permitted is None:
                go.append(one)
            elif permitted.permit is Permit.HOLD or permitted.pattern in probed:
                text = f"the circuit of its route {route!r} is not closed"
                back.append(_snooze(one.work.receipt, permitted.wait_ms, text))
            else:
                if permitted.permit is Permit.PROBE:
                    probed.add(permitted.pattern)  # the others wait for what becomes of this one
                self._permits[one.work.receipt] = permitted
                go.append(one)
        self._say(permits.values())
        return go, back

    def _say(self, permits: Iterable[Permitted]) -> None:
        """Once when a route is held and once when it is not any more, not for every job."""
        for one in permits:
            is_held = one.permit is Permit.HOLD
            if is_held and one.pattern not in self._held:
                self._held.add(one.pattern)
                _log.warning("jobs of route %r are held: its circuit is open", one.pattern)
            elif not is_held and one.pattern in self._held:
                self._held.discard(one.pattern)
                _log.info("jobs of route %r are tried again", one.pattern)

    def _refused(self, error: PenstockError) -> None:
        if not self._is_refused:
            _log.warning("circuits of routes are not kept: %s", error)
        self._is_refused = True


def outcome_of(act: WorkAct) -> RequestOutcome | None:
    """What the end of a job says about its route.

    One that its handler puts off, cancels or buries says nothing: the handler knows better.
    """
    match act.verb:
        case Verb.COMPLETE:
            return RequestOutcome.SUCCESS
        case Verb.FAIL if act.text == NOT_COMMITTED:  # the handler was done with the route
            return RequestOutcome.SUCCESS
        case Verb.FAIL | Verb.TIME_OUT | Verb.CRASH:
            return RequestOutcome.FAILURE
    return None


def _without_answer(ready: Sequence[Ready], error: Exception) -> tuple[list[Ready], list[WorkAct]]:
    _log.warning("circuit state unavailable; snoozing jobs that have a route: %s", error)
    # Not the error's own text, which may name the database's address: readers see `last_error`.
    text = "the state of its route's circuit is unavailable"
    go = [one for one in ready if one.work.route is None]
    held = (one.work for one in ready if one.work.route is not None)
    return go, [_snooze(work.receipt, _UNKNOWN_MS, text) for work in held]


def _snooze(receipt: str, delay_ms: int, text: str | None) -> WorkAct:
    return WorkAct(receipt=receipt, verb=Verb.SNOOZE, delay_ms=delay_ms, text=text)
