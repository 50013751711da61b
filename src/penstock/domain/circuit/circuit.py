"""Circuits: whether requests on a route may be tried, and how their outcomes change that.

               enough outcomes, failure ratio ≥ threshold
    CLOSED ─────────────────────────────────────────────────▶ OPEN ◀──────────┐
      ▲                                            tick of a duty │            │
      │     a probe succeeds                                      ▼            │ a probe fails
      └───────────────────────────────────────────────────── HALF_OPEN ────────┘

Pure functions, cheap enough to replay history: time comes in, the changed circuit comes out.
Statistics alone never close a circuit: while it is open nothing is tried, so only a probe or an
operator closes it.  Closing does not release its queues at once: a duty releases them one after the
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from penstock.domain.circuit.murmur import murmur3_128
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.limits import MINUTE, SECOND

PROBE_MS = 4 * MINUTE  # a single probe blocks others for this long if its outcome is never reported
_WAIT_MS = (2 * SECOND, 2 * MINUTE)  # shortest and longest wait of a job before it asks again
_TICK_LATE_MS = SECOND  # how late a duty may be
_BEHIND_MS = 5 * SECOND  # … and a job that failed waits this much longer than the others
_BLANKS = "".join(map(chr, range(33)))  # the characters that gateleen trims


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class RequestOutcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"


class Permit(StrEnum):
    """The answer to a request that wants to be tried."""

    GO = "go"
    PROBE = "probe"  # go; the outcome decides the circuit's next state
    HOLD = "hold"  # not now: the queue is held until the circuit releases it


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    pattern: str
    state: CircuitState = CircuitState.CLOSED
    fail_ratio: int = 0  # percent
    opened_at: int | None = None
    reopened: int = 0  # how many probes in a row have failed
    is_forced: bool = False  # opened by an operator; only an operator closes it
    generation: int = 0  # grows with every change of state
    probe_until: int = 0  # with a single probe: reserved for a running one until then


class PermitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A permit that was given, to be sent back with the outcome."""

    permit: Permit
    pattern: str
    hash: str
    generation: int = (
        -1
    )  # the circuit's generation at that time; probes of older generations decide nothing
    queue_no: int | None = None  # the queue to hold, if there is one
    is_of_table: bool = True  # whether the pattern is a route of the table; otherwise jobs name it
    wait_ms: int = 0  # jobs: how long a job that was not permitted waits
    retry_ms: int = 0  # jobs: how long a failed probe waits


class OutcomeReport(msgspec.Struct, frozen=True):
    """The outcome of a request that asked for a permit.

    Outcome None: it was not tried after all, because it is too old or its worker is stopping.
    """

    permit_answer: PermitAnswer
    request_id: str
    outcome: RequestOutcome | None
    took_ms: int = 0


class OutcomeCounts(msgspec.Struct, frozen=True):
    successes: int
    failures: int

    @property
    def total(self) -> int:
        return self.successes + self.failures

    @property
    def fail_ratio(self) -> int:
        """In percent.  Divides first, as gateleen does: 29 of 100 are 28."""
        return int(self.failures / self.total * 100) if self.failures else 0


class HeldQueue(msgspec.Struct, frozen=True):
    """A queue that a circuit holds, and since when, or when it was last released for a probe."""

    queue: str
    at: int


@lru_cache(maxsize=10_000)
def circuit_hash(pattern: str) -> str:
    """The circuit's public name: 32 hexadecimal digits."""
    return murmur3_128(pattern.strip(_BLANKS).encode("utf-8", "surrogatepass"))


def permit(
    circuit: Circuit | None, settings: BreakerSettings, *, is_probed: bool = False
) -> Permit:
    """`is_probed`: a probe is running while the circuit is half-open."""
    if not settings.circuit_check_enabled or circuit is None:
        return Permit.GO
    match circuit.state:
        case CircuitState.OPEN:
            return Permit.HOLD
        case CircuitState.HALF_OPEN:
            # In gateleen every request whose queue is not held may go; `single_probe` changes that.
            return Permit.HOLD if settings.single_probe and is_probed else Permit.PROBE
        case CircuitState.CLOSED:
            return Permit.GO


def of_jobs(settings: BreakerSettings) -> BreakerSettings:
    """The settings for jobs, which always probe one at a time: no queue holds the others back."""
    return settings if settings.single_probe else replace(settings, single_probe=True)


def wait_ms(
    circuit: Circuit, settings: BreakerSettings, *, next_tick_at: int | None, now: int
) -> int:
    """How long a job that was not permitted waits before it asks again.

    `next_tick_at`: when open circuits become half-open.  The longer a probe runs, the longer the
    waits.  They stay short because an operator may close the circuit meanwhile.
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
    """How long a job whose probe failed waits, so that another one is tried next.

    Otherwise a job that always fails would keep the circuit open forever.
    """
    task = settings.open_to_half_open
    _, longest = _WAIT_MS
    return (min(task.interval_ms, longest) if task.enabled else longest) + _BEHIND_MS


def judge(
    circuit: Circuit, found: OutcomeCounts, settings: BreakerSettings, *, now: int
) -> Circuit:
    """Update the failure ratio in any state; it can open a closed circuit, but never closes one."""
    judged = replace(circuit, fail_ratio=found.fail_ratio)
    is_enough = found.total >= settings.min_queue_sample_count
    is_bad = found.fail_ratio >= settings.error_threshold_percentage
    if circuit.state is CircuitState.CLOSED and is_enough and is_bad:
        return _open(judged, now=now, reopened=0)
    return judged


def probe(circuit: Circuit, *, now: int) -> Circuit:
    """Reserve the circuit for one probe; others wait for it, for a limited time."""
    return replace(circuit, probe_until=now + PROBE_MS)


def free_probe(circuit: Circuit) -> Circuit:
    """Let the next request probe, because the last one was not tried after all."""
    return replace(circuit, probe_until=0)


def conclude_probe(circuit: Circuit, outcome: RequestOutcome, *, now: int) -> Circuit:
    """Apply the outcome of a probe: success closes the circuit, failure reopens it."""
    if circuit.state is not CircuitState.HALF_OPEN or circuit.is_forced:
        return circuit
    if outcome is RequestOutcome.SUCCESS:
        return close(circuit)
    return _open(circuit, now=now, reopened=circuit.reopened + 1)


def half_open(circuit: Circuit, settings: BreakerSettings, *, now: int) -> Circuit:
    """Half-open it on a duty's tick.  gateleen does so with every open circuit, however recent."""
    if circuit.state is not CircuitState.OPEN or circuit.is_forced:
        return circuit
    if circuit.opened_at is not None and now < circuit.opened_at + open_ms(circuit, settings):
        return circuit
    return _change_state(circuit, CircuitState.HALF_OPEN)


def open_ms(circuit: Circuit, settings: BreakerSettings) -> int:
    """The minimum time it stays open: until the next tick in gateleen, longer if configured."""
    least = settings.min_open_ms
    if settings.open_growth <= 1:
        return least
    # The limit is reached long before that, and a float would overflow.
    times = settings.open_growth ** min(circuit.reopened, 64)
    first = max(settings.open_to_half_open.interval_ms, least)
    return int(max(min(first * times, settings.max_open_ms), least))


def close(circuit: Circuit) -> Circuit:
    """Close it: its outcomes are forgotten, and its queues wait for their release."""
    closed = _change_state(circuit, CircuitState.CLOSED)
    return replace(closed, fail_ratio=0, opened_at=None, reopened=0, is_forced=False)


def force_open(circuit: Circuit, *, now: int) -> Circuit:
    """Open it for an operator: it stays open until an operator closes it."""
    return replace(_open(circuit, now=now, reopened=0), is_forced=True)


def count_released(settings: BreakerSettings, *, tick: int) -> int:
    """How many queues the n-th tick in a row releases: one in gateleen, more if configured."""
    growth = settings.unlock_growth
    return 1 if growth <= 1 else int(min(growth ** min(tick, 64), settings.max_unlocks))


def is_success(status: int) -> bool:
    return 200 <= status < 300 or status == 409


def outcome_of(
    status: int | None, retries: Mapping[str, str], *, took_ms: int, settings: BreakerSettings
) -> tuple[RequestOutcome, bool]:
    """How a response counts, and whether the request is finished.

    2xx and 409 are successes.  Any other status is a failure and is retried, unless the sender
    asked for 0 retries of this status or its class: then the request is given up and counts as a
    success.  No response at all is a failure.
    """
    if status is None:
        return RequestOutcome.FAILURE, False
    if is_success(status):
        return _unless_slow(took_ms, settings), True
    configured = retries.get(str(status), retries.get(f"{status // 100}xx"))
    if configured is not None and _is_zero(configured):
        return RequestOutcome.SUCCESS, True
    return RequestOutcome.FAILURE, False


def judge_duration(report: OutcomeReport, settings: BreakerSettings) -> OutcomeReport:
    """A slow success counts as a failure, if so configured."""
    if report.outcome is not RequestOutcome.SUCCESS:
        return report
    outcome = _unless_slow(report.took_ms, settings)
    return report if outcome is RequestOutcome.SUCCESS else replace(report, outcome=outcome)


def _unless_slow(took_ms: int, settings: BreakerSettings) -> RequestOutcome:
    is_slow = settings.slow_call_ms is not None and took_ms >= settings.slow_call_ms
    return RequestOutcome.FAILURE if is_slow else RequestOutcome.SUCCESS


def _open(circuit: Circuit, *, now: int, reopened: int) -> Circuit:
    return replace(_change_state(circuit, CircuitState.OPEN), opened_at=now, reopened=reopened)


def _change_state(circuit: Circuit, state: CircuitState) -> Circuit:
    return replace(circuit, state=state, generation=circuit.generation + 1, probe_until=0)


def _is_zero(text: str) -> bool:
    try:
        return int(text) == 0
    except ValueError:
        return False
