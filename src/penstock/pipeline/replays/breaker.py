"""Calls of a route, played through domain/circuit/circuit.py under some settings.

A call is an attempt that came to an end: when, of which message, and whether it failed.  One that
comes while the circuit is open is held, and is not tried later in the replay; the first one after
it has become half-open decides.

Whether an opening was right is seen with hindsight: an outage is a time in which at least half of
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


class Call(msgspec.Struct, frozen=True):
    at: int
    message_no: int
    is_failure: bool


class Stretch(msgspec.Struct, frozen=True):
    from_at: int
    to_at: int

    @property
    def ms(self) -> int:
        return self.to_at - self.from_at

    def overlap(self, other: Stretch) -> int:
        return max(0, min(self.to_at, other.to_at) - max(self.from_at, other.from_at))


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    opens: tuple[Stretch, ...] = ()  # from opening to closing, half-open times among them
    reopened: int = 0
    held: int = 0  # calls that would not have been tried
    failed: int = 0  # calls that were tried and failed


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    outages: int
    missed: int  # never open in the outage
    unsafe: int  # the server would not have lived until it opened
    opens: int
    false_opens: int  # began outside of outages
    open_ms: int
    false_open_ms: int  # outside of outages
    delays_ms: tuple[int, ...]  # of each outage that was not missed


class Window:
    """Samples by the rules of circuit.note, tally and trim, without looking at all of them.

    Time only goes on, so those too old to count never count again and need not be kept: of those
    kept by `trim` they would be the first to go.
    """

    def __init__(self, settings: BreakerSettings) -> None:
        self._age_ms = settings.entries_max_age_ms
        self._most = settings.max_queue_sample_count
        self._kept: dict[bool, OrderedDict[int, int]] = {False: OrderedDict(), True: OrderedDict()}

    def note(self, call: Call) -> OutcomeCounts:
        """As they count once this one is among them."""
        kept = self._kept[call.is_failure]
        kept.pop(call.message_no, None)
        kept[call.message_no] = call.at
        since = call.at - self._age_ms
        for line in self._kept.values():
            while line and next(iter(line.values())) < since:
                line.popitem(last=False)
        return OutcomeCounts(len(self._kept[False]), len(self._kept[True]))

    def trim(self) -> None:
        for line in self._kept.values():
            while len(line) > self._most:
                line.popitem(last=False)

    def clear(self) -> None:
        for line in self._kept.values():
            line.clear()


def replay(calls: Iterable[Call], settings: BreakerSettings, within: Stretch) -> Replay:
    """Calls in order of time; those before `within` only prepare, and are not counted."""
    circuit, window = Circuit(pattern=""), Window(settings)
    opens: list[Stretch] = []
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
            opens.append(Stretch(opened_at, call.at))
    if circuit.state is not CircuitState.CLOSED:
        opens.append(Stretch(opened_at, within.to_at))
    counted = tuple(one for one in opens if one.to_at >= within.from_at)
    return Replay(opens=counted, reopened=reopened, held=held, failed=failed)


def outages(calls: Sequence[Call], *, least_ms: int) -> list[Stretch]:
    found: list[Stretch] = []
    begun: Stretch | None = None
    for failures, total in _minutes(calls):
        if len(failures) * 100 >= total * OUTAGE_PERCENT:
            begun = Stretch(begun.from_at if begun else failures[0], failures[-1])
        elif begun is not None:
            found.append(begun)
            begun = None
    found += [begun] if begun is not None else []
    return [one for one in found if one.ms >= least_ms]


def judged(
    replayed: Replay, real: Sequence[Stretch], within: Stretch, *, survival_ms: int | None
) -> Verdict:
    """What happened within a day; outages that began before it belong to the day before."""
    own = [one for one in real if within.from_at <= one.from_at < within.to_at]
    begun = [one for one in replayed.opens if within.from_at <= one.from_at < within.to_at]
    delays = [_delay(one, replayed.opens) for one in own]
    lived = [one.ms if d is None else d for one, d in zip(own, delays, strict=True)]
    days = [
        Stretch(max(o.from_at, within.from_at), min(o.to_at, within.to_at)) for o in replayed.opens
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
    """The duty's ticks, once in each interval, since the circuit was opened."""
    if circuit.state is not CircuitState.OPEN or circuit.opened_at is None:
        return circuit
    every = settings.open_to_half_open.interval_ms
    earliest = circuit.opened_at + circuits.open_ms(circuit, settings)
    tick = max(circuit.opened_at // every + 1, -(-earliest // every)) * every
    return circuits.half_open(circuit, settings, now=tick) if tick <= now else circuit


def _minutes(calls: Iterable[Call]) -> Iterator[tuple[list[int], int]]:
    """Of each minute with calls, the instants of failures, and how many calls."""
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


def _delay(outage: Stretch, opens: Iterable[Stretch]) -> int | None:
    """From the first failure to the opening; 0: it was open already."""
    in_time = [o for o in opens if o.from_at <= outage.to_at and o.to_at > outage.from_at]
    return max(0, min(o.from_at for o in in_time) - outage.from_at) if in_time else None


def _is_in(at: int, outage: Stretch) -> bool:
    return outage.from_at <= at <= outage.to_at
