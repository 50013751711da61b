"""Setting back a store that a clock in the future has written to: all but messages, and nodes."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from penstock.domain import worker as workers
from penstock.domain.circuit.circuit import PROBE_MS
from penstock.domain.fact import FactFilter
from penstock.domain.lake.progress import ArchiveSource, Mark
from penstock.domain.limits import DAY, DEFAULT_LIMITS, HOUR, MINUTE
from penstock.domain.queue.minute_counters import MinuteCounters
from penstock.domain.queue.queue import Queue
from penstock.domain.schedule.schedule import FixedInterval, Template
from penstock.domain.store.store_time import MAX_CARRY_MS
from penstock.domain.worker import NewWorker
from penstock.outbound.dice import SystemDice
from penstock.services.recurring import RecurringService
from penstock.store.maintenance import clock_mark
from tests.clocks import ManualClock
from tests.factories import an_id
from tests.store.circuit_helpers import FAILURE, OPEN, add, get, note, outcomes
from tests.store.contract.future_clock import AHEAD, LEASE_MS, ahead, correct, mail, read_mark
from tests.store.driver import StoreDriver

__all__ = ["ahead", "mail"]


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
