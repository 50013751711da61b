"""Notifications whose handler or worker fails: retried, given up, redelivered, never lost."""

from __future__ import annotations

import pytest

from penstock import RetrySchedule, current
from penstock.domain.message.lifecycle import State
from penstock.runtime.duties import Reaper
from penstock.runtime.worker_duties import WorkerReaper
from tests.client.bus.driver import BusDriver


def test_a_handler_that_fails_once_is_called_again_and_then_it_is_done(
    app, worker, clock, broker, queue, account, moment
):
    calls: list[int] = []
    billing = app.notifications(queue, backoff="10s")

    @billing.handler()
    def on_due(event: str) -> None:
        calls.append(current().attempts)
        if len(calls) == 1:
            raise ValueError("not yet")

    recorded = billing.record("x", tags=(account,))
    worker.round()
    [waiting] = billing.find(tag1=account)
    assert waiting.next_due_at == moment(seconds=10)
    assert waiting.due_at == moment()
    clock.advance(seconds=10)
    worker.round()

    assert calls == [1, 2]
    [done] = billing.past(tag1=account)
    assert (done.state, done.failures, done.attempts) == (State.DONE, 1, 2)
    assert done.due_at == moment()
    [attempt] = broker.history.past(recorded.id).result().attempts
    assert "not yet" in (attempt.error or "")


def test_a_message_whose_handler_always_fails_dies_and_calls_its_hook(
    app, worker, clock, queue, account
):
    given_up: list[tuple[str, str]] = []
    billing = app.notifications(queue, backoff="1s")

    @billing.handler(
        attempts=4, on_exhausted=lambda event, error: given_up.append((event, str(error)))
    )
    def on_due(event: str) -> None:
        raise ValueError("never")

    billing.record("x", tags=(account,))
    for _ in range(10):
        worker.round()
        clock.advance(seconds=1)

    assert given_up == [("x", "never")]
    [dead] = billing.past(tag1=account)
    assert (dead.state, dead.attempts) == (State.DEAD, 4)
    assert (dead.reason or "").startswith("attempts_exhausted: ValueError: never")


@pytest.mark.environments("volume")
def test_scheduled_retries_come_at_the_original_date_plus_each_duration(
    app, worker, clock, queue, account, start, moment
):
    """As in killbill: offsets from the original date, which are not added up."""
    at: list[int] = []
    billing = app.notifications(queue)

    @billing.handler(retry=RetrySchedule(["1h", "1d", "2d"]))
    def on_due(event: str) -> None:
        at.append(clock.now() - start)
        if len(at) < 4:
            raise ValueError("not yet")

    billing.record("x", due_at=moment(minutes=5), tags=(account,))
    clock.advance(minutes=7)  # no worker ran for two minutes: the dates do not shift
    worker.round()
    for _ in range(200):
        clock.advance(minutes=15)
        worker.round()

    minute = 60_000
    due = 5 * minute
    # At the first round at or after 5 min + 1 h, + 1 d, + 2 d.
    assert at[0] == 7 * minute
    for n, offset in enumerate((60, 24 * 60, 48 * 60), start=1):
        assert due + offset * minute <= at[n] < due + (offset + 15) * minute
    [done] = billing.past(tag1=account)
    assert (done.state, done.failures, done.due_at) == (State.DONE, 3, moment(minutes=5))


def test_past_the_end_of_its_schedule_a_notification_is_dead_and_the_hook_is_called_once(
    app, worker, clock, queue, account
):
    given_up: list[str] = []
    billing = app.notifications(queue)

    @billing.handler(
        retry=RetrySchedule(["1m"] * 9), on_exhausted=lambda event, error: given_up.append(event)
    )
    def on_due(event: str) -> None:
        raise ValueError("never")

    billing.record("x", tags=(account,))
    for _ in range(20):
        worker.round()
        clock.advance(minutes=1)

    assert given_up == ["x"]
    [dead] = billing.past(tag1=account)
    # Nine retries and the first: the queue's own limit of five did not cut them short.
    assert (dead.state, dead.attempts) == (State.DEAD, 10)
    assert (dead.reason or "").startswith("attempts_exhausted: ValueError: never")


def test_a_hook_that_fails_does_not_bring_back_what_was_given_up(
    app, worker, clock, queue, account
):
    billing = app.notifications(queue)

    def broken(event: object, error: Exception) -> None:
        raise RuntimeError("the hook itself")

    @billing.handler(retry=RetrySchedule([]), on_exhausted=broken)
    def on_due(event: str) -> None:
        raise ValueError("never")

    billing.record("x", tags=(account,))
    worker.round()

    [dead] = billing.past(tag1=account)
    assert dead.state is State.DEAD


def test_a_notification_without_a_handler_waits_and_is_not_lost(app, worker, clock, queue, account):
    """Killbill claims these and forgets them until its reaper runs."""
    billing = app.notifications(queue)

    @billing.handler("known")
    def on_due(event: str) -> None:
        pass

    billing.record("x", kind="unknown", tags=(account,))
    worker.round()

    [found] = billing.find(tag1=account)
    assert (found.state, found.attempts) == (State.WAITING, 0)


def test_a_notification_of_a_lost_worker_goes_to_another_worker(
    app, worker, clock, broker, queue, account, tenant
):
    """As killbill's reaper does, but with the thresholds of workers."""
    handled: list[str] = []
    billing = app.notifications(queue)

    @billing.handler()
    def on_due(event: str) -> None:
        handled.append(event)

    recorded = billing.record("x", tags=(account, tenant), user_token="u-1")
    lost = BusDriver(app, clock, broker=broker, lease_ms=3_600_000)
    [held] = lost.claim()
    reaper = WorkerReaper(broker.workers, every_ms=1_000)

    reaper.tick(clock.now())
    assert worker.round() == []  # fresh: left alone

    clock.advance(ms=broker.settings.workers.valid_ms)
    reaper.tick(clock.now())
    assert worker.round() == [recorded.id]

    assert handled == ["x"]
    [done] = billing.past(tag1=account)
    assert (done.user_token, done.future_user_token) == ("u-1", recorded.future_user_token)
    [refused] = lost.act(lost.handle(held))
    assert refused is not None  # too late: the other worker has completed it
    [attempt] = broker.history.past(recorded.id).result().attempts
    assert attempt.outcome == "crashed"


def test_a_notification_that_a_live_worker_does_not_finish_is_redelivered_when_its_lease_ends(
    app, worker, clock, broker, queue, account
):
    """They go to the next worker that claims, which may be the same one."""
    billing = app.notifications(queue)

    @billing.handler()
    def on_due(event: str) -> None:
        pass

    recorded = billing.record("x", tags=(account,))
    [stuck] = worker.claim()
    reaper = Reaper(broker.store, every_ms=1_000)

    clock.advance(seconds=59)
    reaper.tick(clock.now())
    assert worker.round() == []

    clock.advance(seconds=1)
    reaper.tick(clock.now())
    assert worker.round() == [recorded.id]
    [refused] = worker.act(worker.handle(stuck))
    assert refused is not None


def test_a_late_notification_that_was_never_claimed_stays_ready(
    app, worker, clock, broker, queue, account
):
    """Killbill's reaper logs these again and again."""
    billing = app.notifications(queue)

    @billing.handler()
    def on_due(event: str) -> None:
        pass

    recorded = billing.record("x", tags=(account,))
    clock.advance(days=3)
    Reaper(broker.store, every_ms=1_000).tick(clock.now())

    [found] = billing.find(tag1=account)
    assert (found.state, found.attempts) == (State.READY, 0)
    assert worker.round() == [recorded.id]
