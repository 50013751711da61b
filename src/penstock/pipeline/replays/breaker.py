"""Replays the calls of a route through domain/circuit/circuit.py under given settings.

A call is an attempt that ended: when, of which message, and whether it failed.  A call while the
circuit is open is held and not tried later in the replay; the first call after the circuit has
become half-open is the probe.

Whether an opening was right is judged in hindsight, by the outages of pipeline/jobs/outages.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import msgspec

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import (
    Circuit,
    CircuitState,
    OutcomeCounts,
    Permit,
    RequestOutcome,
)
from penstock.domain.circuit.settings import BreakerSettings


class RouteCall(msgspec.Struct, frozen=True):
    at: int
    message_no: int
    is_failure: bool


class Interval(msgspec.Struct, frozen=True):
    from_at: int
    to_at: int

    @property
    def ms(self) -> int:
        return self.to_at - self.from_at

    def overlap(self, other: Interval) -> int:
        return max(0, min(self.to_at, other.to_at) - max(self.from_at, other.from_at))


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    opens: tuple[Interval, ...] = ()  # from opening to closing, including half-open times
    reopened: int = 0
    held: int = 0  # calls that would not have been tried
    failed: int = 0  # calls that were tried and failed


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    outages: int
    missed: int  # the circuit never opened in the outage
    unsafe: int  # the server would not have survived until it opened
    opens: int
    false_opens: int  # began outside of outages
    open_ms: int
    false_open_ms: int  # outside of outages
    delays_ms: tuple[int, ...]  # for each outage that was not missed


class ReplayWindow:
    """A faster outcome window with the rules of circuit.note, tally and trim.

    Time only advances, so outcomes that are too old never count again and need not be kept; `trim`
    would drop them first.
    """

    def __init__(self, settings: BreakerSettings) -> None:
        self._age_ms = settings.entries_max_age_ms
        self._most = settings.max_queue_sample_count
        self._kept: dict[bool, OrderedDict[int, int]] = {False: OrderedDict(), True: OrderedDict()}

    def note(self, call: RouteCall) -> OutcomeCounts:
        """Add a call; returns the tally that includes it."""
        kept = self._kept[call.is_failure]
        kept.pop(call.message_no, None)
        kept[call.message_no] = call.at
        since = call.at - self._age_ms
        for outcomes in self._kept.values():
            while outcomes and next(iter(outcomes.values())) < since:
                outcomes.popitem(last=False)
        return OutcomeCounts(len(self._kept[False]), len(self._kept[True]))

    def trim(self) -> None:
        for outcomes in self._kept.values():
            while len(outcomes) > self._most:
                outcomes.popitem(last=False)

    def clear(self) -> None:
        for outcomes in self._kept.values():
            outcomes.clear()


class BreakerReplay:
    """Takes the calls of a route a part at a time, in order of time.

    Its memory is bounded by the settings: outcomes in the window, and one period per opening.
    Calls before `within` only fill the window.
    """

    def __init__(self, settings: BreakerSettings, within: Interval) -> None:
        self._settings = settings
        self._within = within
        self._circuit = Circuit(pattern="")
        self._window = ReplayWindow(settings)
        self._opens: list[Interval] = []
        self._opened_at = self._reopened = self._held = self._failed = 0

    def play(self, calls: Iterable[RouteCall]) -> None:
        for call in calls:
            self._play(call, is_counted=call.at >= self._within.from_at)

    def result(self) -> Replay:
        opens = list(self._opens)
        if self._circuit.state is not CircuitState.CLOSED:
            opens.append(Interval(self._opened_at, self._within.to_at))
        return Replay(
            opens=tuple(one for one in opens if one.to_at >= self._within.from_at),
            reopened=self._reopened,
            held=self._held,
            failed=self._failed,
        )

    def _play(self, call: RouteCall, *, is_counted: bool) -> None:
        settings, window = self._settings, self._window
        before = _tick(self._circuit, settings, now=call.at)
        permit = circuits.permit(before, settings)
        if permit is Permit.HOLD:
            self._circuit = before
            self._held += is_counted
            return
        self._failed += is_counted and call.is_failure
        after = circuits.judge(before, window.note(call), settings, now=call.at)
        window.trim()
        if permit is Permit.PROBE:
            outcome = RequestOutcome.FAILURE if call.is_failure else RequestOutcome.SUCCESS
            after = circuits.conclude_probe(after, outcome, now=call.at)
            self._reopened += is_counted and after.state is CircuitState.OPEN
        if before.state is CircuitState.CLOSED and after.state is CircuitState.OPEN:
            self._opened_at = call.at
        if before.state is not CircuitState.CLOSED and after.state is CircuitState.CLOSED:
            window.clear()
            self._opens.append(Interval(self._opened_at, call.at))
        self._circuit = after


def evaluate(
    replayed: Replay, real: Sequence[Interval], within: Interval, *, survival_ms: int | None
) -> Verdict:
    """Compare a replay with the real outages of a day; earlier ones belong to the day before."""
    own = [one for one in real if within.from_at <= one.from_at < within.to_at]
    begun = [one for one in replayed.opens if within.from_at <= one.from_at < within.to_at]
    delays = [_delay(one, replayed.opens) for one in own]
    lived = [one.ms if d is None else d for one, d in zip(own, delays, strict=True)]
    days = [
        Interval(max(o.from_at, within.from_at), min(o.to_at, within.to_at)) for o in replayed.opens
    ]
    rightly = sum(day.overlap(one) for day in days for one in real)
    open_ms = sum(day.ms for day in days)
    return Verdict(
        outages=len(own),
        missed=delays.count(None),
        unsafe=sum(ms >= survival_ms for ms in lived) if survival_ms is not None else 0,
        opens=len(begun),
        false_opens=sum(not any(_is_in(o.from_at, one) for one in real) for o in begun),
        open_ms=open_ms,
        false_open_ms=open_ms - rightly,
        delays_ms=tuple(d for d in delays if d is not None),
    )


def _tick(circuit: Circuit, settings: BreakerSettings, *, now: int) -> Circuit:
    """Half-open the circuit if a tick of the duty fell due, once per interval since it opened."""
    if circuit.state is not CircuitState.OPEN or circuit.opened_at is None:
        return circuit
    every = settings.open_to_half_open.interval_ms
    earliest = circuit.opened_at + circuits.open_ms(circuit, settings)
    tick = max(circuit.opened_at // every + 1, -(-earliest // every)) * every
    return circuits.half_open(circuit, settings, now=tick) if tick <= now else circuit


def _delay(outage: Interval, opens: Iterable[Interval]) -> int | None:
    """From the first failure to the opening; 0: it was already open."""
    in_time = [o for o in opens if o.from_at <= outage.to_at and o.to_at > outage.from_at]
    return max(0, min(o.from_at for o in in_time) - outage.from_at) if in_time else None


def _is_in(at: int, outage: Interval) -> bool:
    return outage.from_at <= at <= outage.to_at
