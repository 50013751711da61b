"""Compares the counters of a queue with what the tables contain."""

from __future__ import annotations

from collections import Counter
from typing import cast

from penstock.domain.message.history import FAILURES, AttemptOutcome
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Session
from penstock.store.commit.session import SqlSession
from penstock.store.maintenance.checks import wrong_limits
from tests.store.driver import StoreDriver

AT_REST_OR_LIVE = (State.WAITING, State.READY, State.LEASED, State.DEAD)


def check_counters(driver: StoreDriver) -> None:
    """At any moment: the counters of every queue balance and agree with the tables."""
    for queue in driver.queues:
        check_states(driver, queue)
    assert driver.read(held_without_reason) == []
    if driver.keeps_history:
        check_totals(driver)


def held_without_reason(session: Session) -> list[str]:
    """Messages that are blocked or held back without a reason."""
    return wrong_limits(cast(SqlSession, session))


def check_states(driver: StoreDriver, queue: Queue) -> None:
    counts = driver.counts(queue)
    counted = {state: getattr(counts, state.value) for state in AT_REST_OR_LIVE}
    found = {state: len(driver.browse(queue, state)) for state in AT_REST_OR_LIVE}

    assert counted == found, queue.name
    assert counts.is_balanced, (queue.name, counts)


def check_totals(driver: StoreDriver) -> None:
    endings = Counter((ending.queue, ending.outcome) for ending in driver.endings())
    attempts = Counter(
        (attempt.queue_no, attempt.outcome)
        for message_id in driver.sent_ids
        for attempt in driver.attempts(message_id)
    )
    for name in {queue.name for queue in driver.queues}:
        # A name may have been used twice; history is found by name.
        namesakes = [queue for queue in driver.queues if queue.name == name]
        totals = [driver.counts(queue) for queue in namesakes]
        assert sum(t.done_total for t in totals) == endings[name, State.DONE]
        assert sum(t.dead_total for t in totals) == endings[name, State.DEAD]
        # A dead letter that is redriven leaves its queue without a history row.
        assert sum(t.cancelled_total for t in totals) >= endings[name, State.CANCELLED]
        for queue, total in zip(namesakes, totals, strict=True):
            failed = sum(attempts[queue.queue_no, outcome] for outcome in FAILURES)
            assert total.failed_total == failed
            assert total.expired_total == attempts[queue.queue_no, AttemptOutcome.EXPIRED]
