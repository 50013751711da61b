"""A queue's recorded messages under other workers, limits and retries."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND
from penstock.domain.message.retry import Fixed, Listed
from penstock.domain.queue.rate import Rate
from penstock.domain.scaling.fleet import External, Fleet
from penstock.domain.scaling.recommendation import Profile
from penstock.pipeline.replays.fleet import backtest
from penstock.pipeline.replays.what_if import (
    AttemptEnd,
    RecordedAttempt,
    RecordedMessage,
    Scenario,
    Simulation,
    chances,
    peak_of,
    scale,
    simulate,
)
from tests.pipeline.arrivals import Arrival, arrivals_of

FAILED, RETURNED = AttemptEnd.FAILED, AttemptEnd.RETURNED


def played(
    messages: list[RecordedMessage], *, until: int = HOUR, workers: int = 1, **more: object
) -> Simulation:
    scenario = Scenario(workers=workers, **more)  # type: ignore[arg-type]
    return simulate(messages, scenario, from_at=0, to_at=until, chances=chances())


def done(at: int = 0, work_ms: int = 1_000, priority: int = 0) -> RecordedMessage:
    return RecordedMessage(at, (RecordedAttempt(work_ms),), priority)


def dead(*works_ms: int, pause_ms: int = 0) -> RecordedMessage:
    attempts = (RecordedAttempt(work_ms, FAILED, pause_ms) for work_ms in works_ms)
    return RecordedMessage(0, tuple(attempts))


def random_messages(
    count: int, *, per_s: float, work_ms: Callable[[random.Random], float], seed: int
) -> list[RecordedMessage]:
    """Arrivals of a Poisson process."""
    chance = random.Random(seed)
    found, at = [], 0.0
    for _ in range(count):
        at += chance.expovariate(per_s) * SECOND
        found.append(done(round(at), round(work_ms(chance))))
    return found


def erlang_c(servers: int, load: float) -> float:
    """The probability that a message waits, in M/M/c with this many Erlangs."""
    busy = load**servers / math.factorial(servers) * servers / (servers - load)
    return busy / (sum(load**n / math.factorial(n) for n in range(servers)) + busy)


# ---- queueing formulas.  100,000 seeded arrivals: the mean wait is within 6 % of the formula.

MEAN_MS = 1_000
TOLERANCE = 0.06


def exponential(chance: random.Random) -> float:
    return chance.expovariate(1 / MEAN_MS)


@pytest.mark.parametrize(("workers", "load"), [(1, 0.5), (1, 0.7), (3, 2.4), (8, 6.8)])
def test_waits_are_those_of_erlang_c(workers, load):
    messages = random_messages(100_000, per_s=load, work_ms=exponential, seed=5)

    found = played(messages, workers=workers, until=messages[-1].at)

    expected_ms = erlang_c(workers, load) * MEAN_MS / (workers - load)
    assert found.wait.mean_ms == pytest.approx(expected_ms, rel=TOLERANCE)
    assert found.utilisation == pytest.approx(load / workers, rel=0.02)


def test_percentiles_of_waits_are_those_of_m_m_1():
    """P(wait > t) = load · e^(-(1 - load) t), with a mean service time of 1."""
    load = 0.7
    messages = random_messages(100_000, per_s=load, work_ms=exponential, seed=6)

    wait = played(messages, until=messages[-1].at).wait

    for share, found in ((0.5, wait.p50_ms), (0.95, wait.p95_ms), (0.99, wait.p99_ms)):
        expected_ms = -math.log((1 - share) / load) / (1 - load) * MEAN_MS
        assert found == pytest.approx(expected_ms, rel=TOLERANCE)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_equal_service_times_wait_as_in_m_d_1(load):
    messages = random_messages(100_000, per_s=load, work_ms=lambda _: MEAN_MS, seed=7)

    found = played(messages, until=messages[-1].at)

    expected_ms = load / (2 * (1 - load)) * MEAN_MS
    assert found.wait.mean_ms == pytest.approx(expected_ms, rel=TOLERANCE)


@pytest.mark.parametrize(("before", "factor"), [(0.4, 2.0), (0.8, 0.5), (0.4, 1.5)])
def test_scaled_random_arrivals_wait_as_random_arrivals_of_that_rate(before, factor):
    messages = random_messages(100_000, per_s=before, work_ms=exponential, seed=8)

    more = scale(messages, factor, chances())
    found = played(more, until=more[-1].at)

    load = before * factor
    assert len(more) == pytest.approx(factor * len(messages), rel=0.01)
    assert found.wait.mean_ms == pytest.approx(load / (1 - load) * MEAN_MS, rel=2 * TOLERANCE)


def test_a_fixed_fleet_of_the_back_test_is_the_same_queue():
    messages = random_messages(2_000, per_s=1.5, work_ms=exponential, seed=9)
    fleet = Fleet(queue="mail", min=2, max=2, replicas=External())
    arrivals = [Arrival(m.at, m.attempts[0].work_ms) for m in messages]

    found = played(messages, workers=2, until=HOUR)
    other = backtest(arrivals_of(arrivals), fleet, Profile(), from_at=0, to_at=HOUR)

    assert (found.wait.p50_ms, found.wait.p99_ms, found.wait.max_ms, found.backlog_max) == (
        other.age_p50_ms, other.age_p99_ms, other.age_max_ms, other.backlog_max,
    )  # fmt: skip


# ---- limits, priorities, retries


def test_more_workers_wait_less_and_cost_more():
    burst = [done() for _ in range(4)]

    one, four = played(burst), played(burst, workers=4)

    assert (one.wait.max_ms, one.wait.mean_ms, one.backlog_max) == (3_000, 1_500.0, 3)
    assert (four.wait.max_ms, four.backlog_max) == (0, 0)
    assert (one.worker_hours, four.worker_hours) == (1.0, 4.0)
    assert one.utilisation == pytest.approx(4 * SECOND / HOUR)


def test_slots_of_one_worker_run_at_once():
    assert played([done() for _ in range(4)], slots=4).wait.max_ms == 0


def test_at_most_max_leased_run_at_once():
    found = played([done() for _ in range(4)], workers=10, max_leased=2)

    assert (found.wait.max_ms, found.backlog_max) == (1_000, 2)


def test_a_rate_limit_spaces_claims_out():
    found = played([done(work_ms=1) for _ in range(5)], workers=10, rate=Rate(1, SECOND, 2))

    # A burst of two, then one each second.
    assert (found.wait.p50_ms, found.wait.max_ms) == (1_000, 3_000)


def test_urgent_messages_go_first():
    found = played([done(), done(priority=5), done(at=1, priority=1)])

    assert (found.wait.p50_ms, found.wait.max_ms) == (999, 2_000)


def test_a_failed_message_is_retried_after_its_recorded_pause_and_keeps_its_place():
    retried = RecordedMessage(0, (RecordedAttempt(100, FAILED, 50), RecordedAttempt(100)))

    found = played([retried, done(at=10, work_ms=60), done(at=20, work_ms=1_000)])

    # Free at 100; the second runs until 160; the first, back at 150, goes before the third.
    assert found.wait.max_ms == 260 - 20
    assert (found.done, found.dead, found.attempts) == (3, 0, 4)


def test_another_back_off_changes_the_pauses():
    retried = RecordedMessage(
        0,
        (
            RecordedAttempt(100, FAILED, 5_000),
            RecordedAttempt(100, FAILED, 5_000),
            RecordedAttempt(100),
        ),
    )

    assert played([retried], until=1).ended_at == 10_300
    assert played([retried], until=1, backoff=Fixed(1_000)).ended_at == 2_300
    assert played([retried], until=1, backoff=Listed((1_000, 2_000))).ended_at == 3_300


def test_fewer_attempts_save_work_and_more_messages_die():
    retried = RecordedMessage(0, (RecordedAttempt(100, FAILED), RecordedAttempt(100)))
    messages = [retried, dead(10, 20, 30)]

    as_recorded = played(messages)
    once = played(messages, max_attempts=1)
    often = played(messages, max_attempts=5)

    assert (as_recorded.done, as_recorded.dead, as_recorded.attempts) == (1, 1, 5)
    assert (once.done, once.dead, once.attempts) == (0, 2, 2)
    # A message that died is assumed to fail each further attempt like its last.
    assert (often.done, often.dead, often.attempts) == (1, 1, 7)
    assert played([dead(10, 20, 30)], until=1, max_attempts=5).ended_at == 10 + 20 + 3 * 30


def test_a_returned_message_does_not_count_as_failed():
    snoozed = RecordedMessage(0, (RecordedAttempt(10, RETURNED, 500), RecordedAttempt(10)))

    found = played([snoozed], until=1, max_attempts=1, backoff=Fixed(HOUR))

    assert (found.done, found.dead, found.ended_at) == (1, 0, 520)


def test_the_backlog_over_time_shows_the_most_of_each_period():
    burst = [done(at=10 * MINUTE, work_ms=MINUTE) for _ in range(4)]

    found = played(burst, until=HOUR)

    ready = [point.ready for point in found.backlog]
    assert len(ready) == 60
    assert (ready[:10], ready[10:14], ready[14:]) == ([0] * 10, [3, 2, 1, 0], [0] * 46)
    assert found.backlog[10].at == 10 * MINUTE


def test_a_queue_that_cannot_keep_up_is_simulated_until_it_is_empty():
    found = played([done(work_ms=DAY), done(at=1)], until=HOUR)

    assert (found.ended_at, found.done) == (DAY + 1_000, 2)
    assert found.worker_hours == pytest.approx((DAY + 1_000) / HOUR)


def test_nothing_to_do_has_no_waits():
    found = played([])

    assert (found.messages, found.wait.p50_ms, found.wait.mean_ms) == (0, None, None)
    assert (found.utilisation, found.backlog_max) == (0.0, 0)


def test_a_burst_stays_a_burst_when_there_are_more_messages():
    burst = [done(at=7) for _ in range(20)]

    assert {message.at for message in scale(burst, 3, chances())} == {7}
    assert len(scale(burst, 3, chances())) == 60


def test_the_same_seed_is_the_same_chance():
    def some(seed: int) -> list[float]:
        numbers = chances(seed)
        return [next(numbers) for _ in range(1_000)]

    assert some(3) == some(3) != some(4)
    assert all(0 <= number < 1 for number in some(3))
    assert sum(some(3)) / 1_000 == pytest.approx(0.5, abs=0.05)


def test_the_peak_counts_attempts_that_ran_at_once():
    assert peak_of([]) == 0
    assert peak_of([(0, 10), (5, 15), (10, 20)]) == 2
