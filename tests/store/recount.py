"""The counters of a queue, counted anew from what the tables hold."""

from __future__ import annotations

from collections import Counter
from typing import cast

from penstock.domain.message.history import FAILURES, AttemptOutcome
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Session
from penstock.store.commit.session import SqlSession
from penstock.store.maintenance.limit_checks import wrong_limits
from tests.store.desk import Desk

AT_REST_OR_LIVE = (State.WAITING, State.READY, State.LEASED, State.DEAD)


def check_books(desk: Desk) -> None:
    """At any moment: the counters of every queue balance, and say what is in the tables."""
    for queue in desk.queues:
        check_states(desk, queue)
    assert desk.read(held_without_reason) == []
    if desk.keeps_history:
        check_totals(desk)


def held_without_reason(session: Session) -> list[str]:
    """Whoever is blocked or held back although nothing stands before it."""
    return wrong_limits(cast(SqlSession, session))


def check_states(desk: Desk, queue: Queue) -> None:
    counts = desk.counts(queue)
    told = {state: getattr(counts, state.value) for state in AT_REST_OR_LIVE}
    found = {state: len(desk.browse(queue, state)) for state in AT_REST_OR_LIVE}

    assert told == found, queue.name
    assert counts.is_balanced, (queue.name, counts)


def check_totals(desk: Desk) -> None:
    endings = Counter((ending.queue, ending.outcome) for ending in desk.endings())
    attempts = Counter(
        (attempt.queue_no, attempt.outcome)
        for message_id in desk.sent_ids
        for attempt in desk.attempts(message_id)
    )
    for name in {queue.name for queue in desk.queues}:
        # A name may have been given twice; history goes by the name.
        namesakes = [queue for queue in desk.queues if queue.name == name]
        totals = [desk.counts(queue) for queue in namesakes]
        assert sum(t.done_total for t in totals) == endings[name, State.DONE]
        assert sum(t.dead_total for t in totals) == endings[name, State.DEAD]
        # A dead letter that is redriven leaves its queue without an ending.
        assert sum(t.cancelled_total for t in totals) >= endings[name, State.CANCELLED]
        for queue, total in zip(namesakes, totals, strict=True):
            failed = sum(attempts[queue.queue_no, outcome] for outcome in FAILURES)
            assert total.failed_total == failed
            assert total.expired_total == attempts[queue.queue_no, AttemptOutcome.EXPIRED]
