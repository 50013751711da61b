"""Setting back a store that a clock in the future has written to: what is shifted, what stays.

The clock is two days ahead for a while; then it is corrected.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain import worker as workers
from penstock.domain.circuit.circuit import PROBE_MS
from penstock.domain.errors import LeaseLost
from penstock.domain.fact import FactFilter
from penstock.domain.lake.progress import ArchiveSource, Mark
from penstock.domain.limits import DAY, DEFAULT_LIMITS, HOUR, MINUTE, SECOND
from penstock.domain.message.claim_key import KEPT_MS
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.step import Signal, StepTimes
from penstock.domain.queue.minute_counters import MinuteCounters
from penstock.domain.queue.queue import Queue
from penstock.domain.queue.rate import Rate
from penstock.domain.schedule.schedule import FixedInterval, Template
from penstock.domain.store.store_time import LONGEST_DELAY_MS, MAX_CARRY_MS
from penstock.domain.worker import NewWorker
from penstock.outbound.dice import SystemDice
from penstock.ports.store import Acted, Sent
from penstock.services.recurring import RecurringService
from penstock.store.maintenance import clock_mark
from penstock.store.maintenance.clock_mark import SetBack
from tests.clocks import NOON, ManualClock
from tests.factories import an_id
from tests.store.circuit_helpers import FAILURE, OPEN, add, get, note, outcomes
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver

AHEAD = 2 * DAY
LEASE_MS = MINUTE


@pytest.fixture
def ahead(driver: StoreDriver) -> Iterator[StoreDriver]:
    """Two days ahead, after the store was used in the right time."""
    driver.clock.advance(days=2)
    yield driver
    check_counters(driver)


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail", lease_ms=LEASE_MS)


def correct(driver: StoreDriver, *, stopped_ms: int = 0) -> SetBack:
    """The clock is corrected while the store is stopped for `stopped_ms`."""
    mark = driver.now
    driver.clock = ManualClock(mark - AHEAD + stopped_ms)
    return driver.write(
        lambda s: clock_mark.set_back(s, mark=mark, now=driver.now, since=driver.now),
    )


def read_mark(driver: StoreDriver) -> int:
    return driver.read(clock_mark.read_mark)


# ---- messages


def test_a_lease_keeps_its_length_and_its_receipt(ahead: StoreDriver, mail: Queue) -> None:
    ahead.send(mail)
    [leased] = ahead.claim(mail)
    ahead.clock.advance(seconds=20)
    ahead.send(mail)  # the mark moves

    correct(ahead, stopped_ms=5 * SECOND)

    after = ahead.get(leased.id)
    assert (after.state, after.lease_no) == (State.LEASED, leased.lease_no)
    assert after.due_at == ahead.now + LEASE_MS - 20 * SECOND
    ahead.clock.advance(ms=LEASE_MS - 20 * SECOND - 1)
    assert leased.id not in ahead.claim_ids(mail)
    assert isinstance(ahead.act(Verb.COMPLETE, leased), Acted)


def test_a_lease_whose_holder_is_gone_runs_out_and_is_fenced(
    ahead: StoreDriver, mail: Queue
) -> None:
    ahead.send(mail)
    [leased] = ahead.claim(mail)

    correct(ahead)
    ahead.clock.advance(ms=LEASE_MS)

    assert ahead.claim_ids(mail) == [leased.id]
    assert isinstance(ahead.act(Verb.COMPLETE, leased), LeaseLost)


def test_a_lease_from_before_is_not_shortened(driver: StoreDriver, mail: Queue) -> None:
    driver.send(mail)
    [leased] = driver.claim(mail, lease_ms=4 * HOUR)
    driver.clock.advance(hours=1)  # ahead, by an hour
    mark = driver.now
    driver.clock = ManualClock(NOON + MINUTE)

    driver.write(lambda s: clock_mark.set_back(s, mark=mark, now=driver.now, since=driver.now))

    assert driver.get(leased.id).due_at == NOON + 4 * HOUR


def test_a_lease_from_before_that_was_extended_ahead_does_not_last_for_days(
    driver: StoreDriver, mail: Queue
) -> None:
    driver.send(mail)
    [leased] = driver.claim(mail)
    driver.clock.advance(days=2)
    driver.act(Verb.EXTEND, leased, delay_ms=LEASE_MS)

    correct(driver, stopped_ms=SECOND)

    assert driver.get(leased.id).due_at == driver.now + DEFAULT_LIMITS.max_lease_ms


def test_ready_messages_stay_ready_in_their_order(ahead: StoreDriver, mail: Queue) -> None:
    ids = ahead.send_many(mail, 3)

    correct(ahead)

    assert [ahead.get(one).sent_at for one in ids] == [ahead.now] * 3
    ids += ahead.send_many(mail, 2)
    assert ahead.claim_ids(mail) == ids


def test_a_delay_continues_and_a_due_date_stays(ahead: StoreDriver, mail: Queue) -> None:
    delayed = ahead.send(mail, delay_ms=LONGEST_DELAY_MS)
    date = ahead.now + LONGEST_DELAY_MS + 1
    dated = ahead.send(mail, due_at=date)

    done = correct(ahead)

    assert ahead.get(delayed).due_at == ahead.now + LONGEST_DELAY_MS
    assert ahead.get(dated).due_at == date
    assert (done.dates, done.last_date) == (1, date)
    assert "1 messages that were sent meanwhile keep their due dates" in done.text
    ahead.clock.advance(ms=LONGEST_DELAY_MS)
    assert ahead.claim_ids(mail) == [delayed]


def test_a_date_from_before_is_not_due_early(driver: StoreDriver, mail: Queue) -> None:
    tomorrow = driver.send(mail, due_at=NOON + 3 * DAY)
    driver.clock.advance(days=2)
    driver.send(mail)

    correct(driver)
    driver.claim(mail)

    assert driver.claim_ids(mail) == []
    driver.clock.advance(days=3)
    assert tomorrow in driver.claim_ids(mail)


def test_a_back_off_continues(ahead: StoreDriver, mail: Queue) -> None:
    ahead.send(mail)
    [leased] = ahead.claim(mail)
    ahead.act(Verb.FAIL, leased, delay_ms=10 * SECOND)

    correct(ahead)

    assert ahead.claim_ids(mail) == []
    ahead.clock.advance(seconds=10)
    assert ahead.claim_ids(mail) == [leased.id]


def test_a_short_expiry_continues(ahead: StoreDriver, mail: Queue) -> None:
    ahead.send(mail, expires_in_ms=30 * SECOND)

    correct(ahead)

    ahead.clock.advance(seconds=30)
    assert ahead.claim_ids(mail) == []


def test_a_dedup_window_continues_and_one_from_before_is_not_shortened(driver: StoreDriver) -> None:
    mail = driver.queue("mail", dedup_window_ms=3 * DAY)
    first = driver.send(mail, dedup_key="old")
    driver.clock.advance(days=2)
    second = driver.send(mail, dedup_key="new")

    correct(driver, stopped_ms=SECOND)

    def again(key: str) -> Sent:
        [answer] = driver.submit_send(mail, dedup_key=key).result(WAIT_S)
        driver.sent_ids.pop()
        assert isinstance(answer, Sent)
        return answer

    driver.clock.advance(days=3, seconds=-2)
    assert (again("old").id, again("new").id) == (first, second)
    driver.clock.advance(seconds=2)
    assert not again("new").is_duplicate


def test_a_repeatable_claim_is_forgotten_in_time(ahead: StoreDriver, mail: Queue) -> None:
    ahead.send(mail)
    ahead.claim(mail, claim_key="k")

    correct(ahead)

    def forget() -> int:
        return ahead.write(lambda s: s.maintenance.forget_claims(now=ahead.now, limit=10))

    assert forget() == 0
    ahead.clock.advance(ms=KEPT_MS)
    assert forget() == 1


def test_durable_sleeps_waits_and_signals_continue(ahead: StoreDriver, mail: Queue) -> None:
    ahead.send(mail)
    [held] = ahead.claim(mail)
    lease, wrote_at = Lease.of(held), ahead.now
    ahead.write(
        lambda s: s.steps.record(lease, "sleep", '{"sleep_ms":1000}', StepTimes(), now=wrote_at)
    )
    ahead.write(lambda s: s.signals.wait(lease, "a", "a", until_at=wrote_at + HOUR, now=wrote_at))
    ahead.write(lambda s: s.signals.send(Signal("b", "1", wrote_at, wrote_at + DAY)))

    correct(ahead)

    now = ahead.now
    steps, _ = ahead.read(
        lambda s: s.steps.page(held.message_no, after_no=0, limit=1, max_bytes=100)
    )
    [wait] = ahead.read(lambda s: s.signals.waits_of(held.message_no))
    kept = ahead.read(lambda s: s.signals.find("b", now=now))
    assert [step.at for step in steps] == [now]
    assert (wait.at, wait.until_at) == (now, now + HOUR)
    assert kept == Signal("b", "1", now, now + DAY)


def test_a_time_limit_counts_from_the_claim(ahead: StoreDriver, mail: Queue) -> None:
    ahead.send(mail, timeout_ms=30 * SECOND)
    [leased] = ahead.claim(mail)

    correct(ahead)

    ahead.clock.advance(seconds=29)
    assert isinstance(ahead.act(Verb.EXTEND, leased, delay_ms=LEASE_MS), Acted)
    ahead.clock.advance(seconds=1)
    assert isinstance(ahead.act(Verb.EXTEND, leased, delay_ms=LEASE_MS), LeaseLost)


def test_a_rate_continues(ahead: StoreDriver) -> None:
    slow = ahead.queue("slow", rate=Rate(1, SECOND, 1))
    ids = ahead.send_many(slow, 2)
    assert ahead.claim_ids(slow) == ids[:1]

    correct(ahead)

    assert ahead.claim_ids(slow) == []
    ahead.clock.advance(seconds=1)
    assert ahead.claim_ids(slow) == ids[1:]


# ---- what is not a message


def test_a_worker_that_has_exited_is_missed_in_time(ahead: StoreDriver) -> None:
    worker = workers.register(
        NewWorker(), worker_id=an_id(ahead.now), now=ahead.now, valid_ms=MINUTE
    )
    ahead.write(lambda s: s.workers.add(worker))

    correct(ahead)

    def overdue() -> list[str]:
        return [one.id for one in ahead.read(lambda s: s.workers.overdue(now=ahead.now, limit=9))]

    assert overdue() == []
    ahead.clock.advance(minutes=1)
    assert overdue() == [worker.id]


def test_a_circuit_that_opened_ahead_of_time_is_probed_in_time(ahead: StoreDriver) -> None:
    add(ahead, state=OPEN, opened_at=ahead.now, probe_until=ahead.now + PROBE_MS)
    note(ahead, ("r1", FAILURE))

    correct(ahead)

    found = get(ahead)
    assert found is not None
    assert (found.opened_at, found.probe_until) == (ahead.now, ahead.now + PROBE_MS)
    assert outcomes(ahead, FAILURE) == {"r1": ahead.now}


def test_recurring_work_that_ran_ahead_is_fired_in_its_time(
    ahead: StoreDriver, mail: Queue
) -> None:
    recurring = RecurringService(ahead.store, ahead.clock, SystemDice(), DEFAULT_LIMITS)
    recurring.declare("hourly", FixedInterval(HOUR), Template(queue="mail")).result()
    recurring.declare("rare", FixedInterval(100 * DAY), Template(queue="mail")).result()
    rare_at = recurring.get("rare").result().next_at
    ahead.clock.advance(hours=1)
    fired = recurring.fire("hourly", now=ahead.now).result()
    assert fired is not None
    assert fired.last_id is not None
    ahead.sent_ids.append(fired.last_id)

    done = correct(ahead)

    assert recurring.get("hourly").result().next_at == ahead.now // HOUR * HOUR + HOUR
    assert recurring.get("rare").result().next_at == rare_at
    assert done.schedules == 1


def test_minutes_that_are_still_to_come_have_no_samples(ahead: StoreDriver) -> None:
    zeros = (0,) * 11
    past = ahead.now - AHEAD - MINUTE
    ahead.write(
        lambda s: s.minute_counters.add(
            [MinuteCounters(0, past, *zeros), MinuteCounters(0, ahead.now, *zeros)],
            at=past,
            is_for_lake=True,
        )
    )

    correct(ahead)

    found = ahead.read(lambda s: s.minute_counters.before(0, at=2**62))
    assert found is not None
    assert found.minute_at == past


def test_days_that_are_not_over_are_archived_to_their_end(ahead: StoreDriver) -> None:
    today = (ahead.now - AHEAD) // DAY
    days = [today - 2, today - 1, today]

    def close(session: Any) -> None:
        for day in days:
            session.archive.close(Mark(ArchiveSource.HISTORY, day), now=ahead.now)

    ahead.write(close)

    correct(ahead)

    marks = ahead.read(lambda s: s.archive.marks())
    assert {mark.day: mark.is_closed for mark in marks} == dict(
        zip(days, [True, False, False], strict=True)
    )


def test_the_mark_follows_and_history_has_a_fact(ahead: StoreDriver, mail: Queue) -> None:
    ahead.send(mail)
    mark = ahead.now

    correct(ahead)

    assert read_mark(ahead) == ahead.now
    [fact] = ahead.read(lambda s: s.facts.search(FactFilter(kind=clock_mark.CLOCK_SET_BACK)))
    assert fact.at == ahead.now
    assert f'"by_ms":{AHEAD}' in fact.data.replace(" ", "")
    ahead.clock.advance(minutes=1)
    ahead.send(mail)
    assert read_mark(ahead) == ahead.now, f"and is raised again, though {mark} was seen"


# ---- nodes that share a store


def test_a_shared_store_is_set_back_once_and_only_beyond_the_bound(
    ahead: StoreDriver, mail: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    ahead.send(mail)
    [leased] = ahead.claim(mail)
    mark = ahead.now
    assert clock_mark.follow(ahead.store, now=mark - MAX_CARRY_MS) is None
    ahead.clock = ManualClock(mark - AHEAD)

    with caplog.at_level(logging.WARNING, "penstock.store"):
        done = clock_mark.follow(ahead.store, now=ahead.now)

    assert done is not None
    assert (done.mark, done.now, done.messages) == (mark, ahead.now, 1)
    assert "2030-03-16T12:00:00.000Z to 2030-03-14T12:00:00.000Z, by 2 d" in caplog.text
    assert ahead.get(leased.id).due_at == ahead.now + LEASE_MS
    assert clock_mark.follow(ahead.store, now=ahead.now) is None
    caplog.clear()  # that was expected


def test_rows_that_nodes_wrote_a_moment_ago_do_not_count_as_the_future(
    ahead: StoreDriver, mail: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """Their clocks differ a little from that of the node that sets the store back."""
    ahead.send(mail)
    mark, right = ahead.now, ahead.now - AHEAD
    ahead.clock = ManualClock(right + MAX_CARRY_MS)
    [leased] = ahead.claim(mail)
    ahead.clock = ManualClock(right)

    done = clock_mark.follow(ahead.store, now=right)

    assert done is not None
    assert done.mark == mark
    assert ahead.get(leased.id).due_at == leased.due_at
    caplog.clear()  # that was expected
