"""Setting back a store that a clock in the future has written to: its messages."""

from __future__ import annotations

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import DAY, DEFAULT_LIMITS, HOUR, MINUTE, SECOND
from penstock.domain.message.claim_key import KEPT_MS
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.step import Signal, StepTimes
from penstock.domain.queue.queue import Queue
from penstock.domain.queue.rate import Rate
from penstock.domain.store.store_time import LONGEST_DELAY_MS
from penstock.ports.store import Acted, Sent
from penstock.store.maintenance import clock_mark
from tests.clocks import NOON, ManualClock
from tests.store.contract.future_clock import LEASE_MS, ahead, correct, mail
from tests.store.driver import WAIT_S, StoreDriver

__all__ = ["ahead", "mail"]


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
