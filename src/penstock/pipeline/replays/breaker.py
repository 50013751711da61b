"""Replays the calls of a route through domain/circuit/circuit.py under given settings.

A call is an attempt that ended: when, of which message, and whether it failed.  A call while the
circuit is open is held and not tried later in the replay; the first call after the circuit has
become half-open is the probe.

Whether an opening was right is judged in hindsight: an outage is a period in which at least half of
the calls of every minute failed (minutes without calls do not end it), from its first failure to
its last, if that is long enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

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
from penstock.domain.limits import MINUTE

OUTAGE_PERCENT = 50


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


def replay(calls: Iterable[RouteCall], settings: BreakerSettings, within: Interval) -> Replay:
    """Calls are in order of time; those before `within` only fill the window."""
    circuit, window = Circuit(pattern=""), ReplayWindow(settings)
    opens: list[Interval] = []
    opened_at, reopened, held, failed = 0, 0, 0, 0
    for call in calls:
        is_counted = call.at >= within.from_at
        circuit = _ticked(circuit, settings, now=call.at)
        permit = circuits.permit(circuit, settings)
        if permit is Permit.HOLD:
            held += is_counted
            continue
        failed += is_counted and call.is_failure
        before = circuit
        circuit = circuits.judge(circuit, window.note(call), settings, now=call.at)
        window.trim()
        if permit is Permit.PROBE:
            outcome = RequestOutcome.FAILURE if call.is_failure else RequestOutcome.SUCCESS
            circuit = circuits.conclude_probe(circuit, outcome, now=call.at)
            reopened += is_counted and circuit.state is CircuitState.OPEN
        if before.state is CircuitState.CLOSED and circuit.state is CircuitState.OPEN:
            opened_at = call.at
        if before.state is not CircuitState.CLOSED and circuit.state is CircuitState.CLOSED:
            window.clear()
            opens.append(Interval(opened_at, call.at))
    if circuit.state is not CircuitState.CLOSED:
        opens.append(Interval(opened_at, within.to_at))
    counted = tuple(one for one in opens if one.to_at >= within.from_at)
    return Replay(opens=counted, reopened=reopened, held=held, failed=failed)


def outages(calls: Sequence[RouteCall], *, least_ms: int) -> list[Interval]:
    found: list[Interval] = []
    begun: Interval | None = None
    for failures, total in _minutes(calls):
        if len(failures) * 100 >= total * OUTAGE_PERCENT:
            begun = Interval(begun.from_at if begun else failures[0], failures[-1])
        elif begun is not None:
            found.append(begun)
            begun = None
    found += [begun] if begun is not None else []
    return [one for one in found if one.ms >= least_ms]


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


def _ticked(circuit: Circuit, settings: BreakerSettings, *, now: int) -> Circuit:
    """Half-open the circuit if a tick of the duty fell due, once per interval since it opened."""
    if circuit.state is not CircuitState.OPEN or circuit.opened_at is None:
        return circuit
    every = settings.open_to_half_open.interval_ms
    earliest = circuit.opened_at + circuits.open_ms(circuit, settings)
    tick = max(circuit.opened_at // every + 1, -(-earliest // every)) * every
    return circuits.half_open(circuit, settings, now=tick) if tick <= now else circuit


def _minutes(calls: Iterable[RouteCall]) -> Iterator[tuple[list[int], int]]:
    """For each minute with calls: the instants of its failures, and the number of calls."""
    minute, failures, total = None, list[int](), 0
    for call in calls:
        if call.at // MINUTE != minute:
            if total:
                yield failures, total
            minute, failures, total = call.at // MINUTE, [], 0
        total += 1
        if call.is_failure:
            failures.append(call.at)
    if total:
        yield failures, total


def _delay(outage: Interval, opens: Iterable[Interval]) -> int | None:
    """From the first failure to the opening; 0: it was already open."""
    in_time = [o for o in opens if o.from_at <= outage.to_at and o.to_at > outage.from_at]
    return max(0, min(o.from_at for o in in_time) - outage.from_at) if in_time else None


def _is_in(at: int, outage: Interval) -> bool:
    return outage.from_at <= at <= outage.to_at
