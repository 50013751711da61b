"""Circuits: whether requests of a route may be tried, and what their outcomes change.

               enough samples, ratio of failures ≥ threshold
    CLOSED ─────────────────────────────────────────────────▶ OPEN ◀──────────┐
      ▲                                            tick of a duty │            │ a request that was
      │     a request that was let through succeeds               ▼            │ let through fails
      └───────────────────────────────────────────────────── HALF_OPEN ────────┘

Pure, and so small that history can be replayed through it: time comes in, the changed circuit comes
out.  A circuit never closes by statistics alone; while it is open nothing is tried, so only a
request that was let through half-open, or a person, closes it.  Closing does not let its queues go:
it puts them in a line, out of which a duty lets one after the other go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from penstock.domain.circuit.murmur import murmur3_128
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.limits import MINUTE, SECOND

PROBE_MS = 4 * MINUTE  # so long a single probe keeps others from trying, if nothing is heard of it
_WAIT_MS = (2 * SECOND, 2 * MINUTE)  # how long jobs wait at least and at most before they ask again
_TICK_LATE_MS = SECOND  # a duty may be so late
_BEHIND_MS = 5 * SECOND  # … and whoever has failed comes so long after the others
_BLANKS = "".join(map(chr, range(33)))  # what gateleen trims

Entries = Mapping[str, int]  # by unique id of a request: the instant of its latest attempt


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Outcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"


class Permit(StrEnum):
    """What a request is told before it is tried."""

    GO = "go"
    PROBE = "probe"  # go; what becomes of it decides about the circuit
    HOLD = "hold"  # not now: its queue is held until the circuit lets it go


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    pattern: str
    state: CircuitState = CircuitState.CLOSED
    fail_ratio: int = 0  # percent
    opened_at: int | None = None
    reopened: int = 0  # in a row: how often a request that was let through failed
    is_forced: bool = False  # open because a person says so; no duty and no request changes that
    generation: int = 0  # grows with every change of state
    probe_until: int = 0  # where one is tried at a time: until then it is another one's turn


class Permitted(msgspec.Struct, frozen=True, kw_only=True):
    """What a request was told, to be shown when it is known what became of it."""

    permit: Permit
    pattern: str
    hash: str
    generation: int = (
        -1
    )  # of the circuit when it was asked; a probe of an older one decides nothing
    queue_no: int | None = None  # the queue to be held, if there is one
    is_of_table: bool = True  # the pattern is that of a route of the table, not one of jobs
    wait_ms: int = 0  # of jobs: so long those wait that are not let through
    retry_ms: int = 0  # of jobs: so long a probe waits that fails


class Reported(msgspec.Struct, frozen=True):
    """What became of a request that was told whether it may be tried.

    None: it was not tried after all, because it is too old or its worker stops.
    """

    permitted: Permitted
    request_id: str
    outcome: Outcome | None
    took_ms: int = 0


class Samples(msgspec.Struct, frozen=True):
    """What the ratio is made of.  An id that failed and then succeeded stands in both."""

    success: Entries = {}
    failure: Entries = {}


class Tally(msgspec.Struct, frozen=True):
    successes: int
    failures: int

    @property
    def total(self) -> int:
        return self.successes + self.failures

    @property
    def fail_ratio(self) -> int:
        """Percent.  The division comes first, as in the seed: 29 of 100 are 28."""
        return int(self.failures / self.total * 100) if self.failures else 0


class Held(msgspec.Struct, frozen=True):
    """A queue that a circuit holds, and since when, or when it was last let go to try."""

    queue: str
    at: int


@lru_cache(maxsize=10_000)
def circuit_hash(pattern: str) -> str:
    """How a circuit is named outside: 32 hexadecimal digits."""
    return murmur3_128(pattern.strip(_BLANKS).encode("utf-8", "surrogatepass"))


def permit(
    circuit: Circuit | None, settings: BreakerSettings, *, is_probed: bool = False
) -> Permit:
    """`is_probed`: another request is being tried while the circuit is half-open."""
    if not settings.circuit_check_enabled or circuit is None:
        return Permit.GO
    match circuit.state:
        case CircuitState.OPEN:
            return Permit.HOLD
        case CircuitState.HALF_OPEN:
            # The seed lets all go that are not held; whoever wants one probe at a time says so.
            return Permit.HOLD if settings.single_probe and is_probed else Permit.PROBE
        case CircuitState.CLOSED:
            return Permit.GO


def of_jobs(settings: BreakerSettings) -> BreakerSettings:
    """Jobs have no queue that would keep them back, so one at a time is tried in any case."""
    return settings if settings.single_probe else replace(settings, single_probe=True)


def wait_ms(
    circuit: Circuit, settings: BreakerSettings, *, next_tick_at: int | None, now: int
) -> int:
    """How long a job waits that is not let through: until it is worth asking again.

    `next_tick_at`: when open circuits become half-open.  While a probe is under way the waits grow
    with the time it takes.  Nobody waits for very long: a person may close the circuit meanwhile.
    """
    shortest, longest = _WAIT_MS
    if circuit.state is CircuitState.HALF_OPEN:
        wanted = now - (circuit.probe_until - PROBE_MS) if circuit.probe_until else 0
    elif circuit.is_forced or not settings.open_to_half_open.enabled:
        wanted = longest
    else:
        tick_at = now if next_tick_at is None else next_tick_at
        earliest = (circuit.opened_at or 0) + open_ms(circuit, settings)
        wanted = max(tick_at, earliest) + _TICK_LATE_MS - now
    return min(max(wanted, shortest), longest)


def retry_ms(settings: BreakerSettings) -> int:
    """How long a job waits that was tried and failed: next time another one is to be tried.

    Otherwise one that always fails would keep a circuit open for ever.
    """
    task = settings.open_to_half_open
    _, longest = _WAIT_MS
    return (min(task.interval_ms, longest) if task.enabled else longest) + _BEHIND_MS


def note(samples: Samples, request_id: str, outcome: Outcome, *, now: int) -> Samples:
    """A new attempt takes the place of an older one of the same request with the same outcome."""
    if outcome is Outcome.SUCCESS:
        return Samples({**samples.success, request_id: now}, samples.failure)
    return Samples(samples.success, {**samples.failure, request_id: now})


def tally(samples: Samples, settings: BreakerSettings, *, now: int) -> Tally:
    """Of the window, its older edge included."""
    since = now - settings.entries_max_age_ms
    return Tally(_within(samples.success, since), _within(samples.failure, since))


def trim(samples: Samples, settings: BreakerSettings) -> Samples:
    """The latest ones, of each outcome as many as are kept."""
    most = settings.max_queue_sample_count
    return Samples(_latest(samples.success, most), _latest(samples.failure, most))


def judge(circuit: Circuit, found: Tally, settings: BreakerSettings, *, now: int) -> Circuit:
    """The ratio is kept in every state; it opens a closed circuit and never closes one."""
    judged = replace(circuit, fail_ratio=found.fail_ratio)
    is_enough = found.total >= settings.min_queue_sample_count
    is_bad = found.fail_ratio >= settings.error_threshold_percentage
    if circuit.state is CircuitState.CLOSED and is_enough and is_bad:
        return _opened(judged, now=now, reopened=0)
    return judged


def probe(circuit: Circuit, *, now: int) -> Circuit:
    """One request is being tried: others wait for it, but not for ever."""
    return replace(circuit, probe_until=now + PROBE_MS)


def free_probe(circuit: Circuit) -> Circuit:
    """Nothing came of the one that was tried: the next one may."""
    return replace(circuit, probe_until=0)


def settle(circuit: Circuit, outcome: Outcome, *, now: int) -> Circuit:
    """What became of a request that was let through half-open; others decide nothing."""
    if circuit.state is not CircuitState.HALF_OPEN or circuit.is_forced:
        return circuit
    if outcome is Outcome.SUCCESS:
        return close(circuit)
    return _opened(circuit, now=now, reopened=circuit.reopened + 1)


def half_open(circuit: Circuit, settings: BreakerSettings, *, now: int) -> Circuit:
    """The tick of a duty.  In the seed all open circuits move, however lately they have opened."""
    if circuit.state is not CircuitState.OPEN or circuit.is_forced:
        return circuit
    if circuit.opened_at is not None and now < circuit.opened_at + open_ms(circuit, settings):
        return circuit
    return _changed(circuit, CircuitState.HALF_OPEN)


def open_ms(circuit: Circuit, settings: BreakerSettings) -> int:
    """How long it stays open at least: until the next tick in the seed, ever longer if so set."""
    least = settings.min_open_ms
    if settings.open_growth <= 1:
        return least
    # Beyond some doublings the limit is reached anyway, and a float is not.
    times = settings.open_growth ** min(circuit.reopened, 64)
    first = max(settings.open_to_half_open.interval_ms, least)
    return int(max(min(first * times, settings.max_open_ms), least))


def close(circuit: Circuit) -> Circuit:
    """Its samples are forgotten, and its queues go into the line of those to be let go."""
    closed = _changed(circuit, CircuitState.CLOSED)
    return replace(closed, fail_ratio=0, opened_at=None, reopened=0, is_forced=False)


def force_open(circuit: Circuit, *, now: int) -> Circuit:
    """By a person: it stays open until a person closes it."""
    return replace(_opened(circuit, now=now, reopened=0), is_forced=True)


def next_sample(held: Iterable[Held], *, now: int) -> tuple[Held | None, list[Held]]:
    """The queue that has waited longest is let go to try, and goes to the back of the line."""
    line = sorted(held, key=lambda one: (one.at, one.queue))
    if not line:
        return None, []
    first, *others = line
    return first, [*others, Held(first.queue, now)]


def in_order(held: Iterable[Held]) -> list[str]:
    """As they are put into the line of those to be let go when their circuit closes."""
    return [one.queue for one in sorted(held, key=lambda one: (one.at, one.queue))]


def unlocks(settings: BreakerSettings, *, tick: int) -> int:
    """How many queues the n-th tick in a row lets go: one in the seed, ever more if so set."""
    growth = settings.unlock_growth
    return 1 if growth <= 1 else int(min(growth ** min(tick, 64), settings.max_unlocks))


def is_success(status: int) -> bool:
    return 200 <= status < 300 or status == 409


def outcome_of(
    status: int | None, retries: Mapping[str, str], *, took_ms: int, settings: BreakerSettings
) -> tuple[Outcome, bool]:
    """How a response counts, and whether the request is done with.

    2xx and 409 are successes.  Any other status is a failure and tried again, unless the sender has
    said of this status or of its class that it is to be tried 0 times: then it is given up, and
    counts as a success.  No response at all is a failure.
    """
    if status is None:
        return Outcome.FAILURE, False
    if is_success(status):
        return _unless_slow(took_ms, settings), True
    said = retries.get(str(status), retries.get(f"{status // 100}xx"))
    if said is not None and _is_zero(said):
        return Outcome.SUCCESS, True
    return Outcome.FAILURE, False


def timed(report: Reported, settings: BreakerSettings) -> Reported:
    """What went well but took too long is a failure, if so set."""
    if report.outcome is not Outcome.SUCCESS:
        return report
    outcome = _unless_slow(report.took_ms, settings)
    return report if outcome is Outcome.SUCCESS else replace(report, outcome=outcome)


def _unless_slow(took_ms: int, settings: BreakerSettings) -> Outcome:
    is_slow = settings.slow_call_ms is not None and took_ms >= settings.slow_call_ms
    return Outcome.FAILURE if is_slow else Outcome.SUCCESS


def _opened(circuit: Circuit, *, now: int, reopened: int) -> Circuit:
    return replace(_changed(circuit, CircuitState.OPEN), opened_at=now, reopened=reopened)


def _changed(circuit: Circuit, state: CircuitState) -> Circuit:
    return replace(circuit, state=state, generation=circuit.generation + 1, probe_until=0)


def _within(entries: Entries, since: int) -> int:
    return sum(at >= since for at in entries.values())


def _latest(entries: Entries, most: int) -> Entries:
    if len(entries) <= most:
        return entries
    ordered = sorted(entries.items(), key=lambda entry: (entry[1], entry[0]))
    return dict(ordered[len(ordered) - most :])


def _is_zero(text: str) -> bool:
    try:
        return int(text) == 0
    except ValueError:
        return False
