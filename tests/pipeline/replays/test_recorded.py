"""Recorded days of a real broker: the simulator reproduces their waits."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.lake.layout import HISTORY, dt_of, midnight_of
from penstock.domain.limits import DAY, HOUR, SECOND
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.retry import Fixed
from penstock.pipeline.files.local_lake import LocalLake
from penstock.pipeline.replays.recorded import RecordedQueue, last_day, read_queue
from penstock.pipeline.replays.what_if import (
    AttemptEnd,
    RecordedAttempt,
    Scenario,
    Simulation,
    chances,
    simulate,
)
from penstock.pipeline.spark.stopped import PipelineStopped
from penstock.ports.store import Store
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.driver import StoreDriver

WORKERS = 3
BACKOFF = Fixed(5_000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_sqlite(tmp_path / "penstock.db")
    yield store
    store.close()


@pytest.fixture
def driver(store: Store, tmp_path: Path) -> ArchiverDriver:
    """At the beginning of a day."""
    clock = ManualClock()
    clock.advance(ms=DAY - clock.now() % DAY)
    return ArchiverDriver(StoreDriver(store, clock), tmp_path / "lake")


class Workers:
    """Three workers that claim from a real store as soon as they are free; one in ten fails."""

    def __init__(self, store: StoreDriver) -> None:
        self._store = store
        self._chance = random.Random(3)
        self._queue = store.queue("mail", max_attempts=4, backoff=BACKOFF)
        self._free = WORKERS
        self._events: list[tuple[int, int, Message | None]] = []
        self._added = 0

    def work(self, *, messages: int, per_s: float) -> None:
        """Messages arrive, and attempts end, at the instants of the events."""
        sends, at = set(), float(self._store.now)
        for _ in range(messages):
            at += self._chance.expovariate(per_s) * SECOND
            sends.add(self._add(round(at)))
        while self._events:
            at_ms, number, ended = heapq.heappop(self._events)
            self._store.clock.advance(ms=at_ms - self._store.now)
            if number in sends:
                self._store.send(self._queue)
            elif ended is not None:
                self._end(ended)
            if not self._events or self._events[0][0] > at_ms:
                self._claim()

    def _claim(self) -> None:
        for message in self._store.claim(self._queue, self._free) if self._free else []:
            work_ms = max(1, round(self._chance.expovariate(1 / 1_000)))
            self._add(self._store.now + work_ms, message)
            self._free -= 1

    def _end(self, message: Message) -> None:
        self._free += 1
        if self._chance.random() < 0.9:
            self._store.complete(message)
            return
        self._store.act(Verb.FAIL, message)
        self._add(self._store.now + BACKOFF.delay_ms)  # the workers look again then

    def _add(self, at: int, message: Message | None = None) -> int:
        self._added += 1
        heapq.heappush(self._events, (at, self._added, message))
        return self._added


def read(driver: ArchiverDriver, queue: str = "mail", *, days: int = 1, **more: Any) -> Any:
    driver.run()
    lake = LocalLake(str(driver.folder))
    from_dt = lake.files(HISTORY)[0].dt
    to_dt = dt_of(midnight_of(from_dt) + (days - 1) * DAY)
    return read_queue(lake, queue, from_dt=from_dt, to_dt=to_dt, **more)


def replay(recorded: RecordedQueue, **scenario: Any) -> Simulation:
    return simulate(
        recorded.messages,
        Scenario(**({"workers": WORKERS} | scenario)),
        from_at=recorded.from_at,
        to_at=recorded.to_at,
        chances=chances(),
    )


def test_a_day_replayed_with_its_workers_and_retries_has_the_waits_of_that_day(driver):
    """With the queue's back-off to the millisecond; with the recorded pauses, within 5 %."""
    Workers(driver.store_driver).work(messages=1_500, per_s=2.2)

    recorded = read(driver)
    same = replay(recorded, backoff=BACKOFF, max_attempts=4)
    as_recorded = replay(recorded)
    fewer = replay(recorded, workers=WORKERS - 1)

    assert recorded.wait.p95_ms is not None
    assert recorded.wait.p95_ms > SECOND, "there was a backlog"
    assert same.wait == recorded.wait
    assert (recorded.slots, same.messages) == (WORKERS, 1_500)
    for name in ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"):
        found, wanted = getattr(as_recorded.wait, name), getattr(recorded.wait, name)
        assert found == pytest.approx(wanted, rel=0.05), name
    assert fewer.wait.p50_ms > 10 * recorded.wait.p50_ms


def test_attempts_are_recorded_with_their_ends_and_pauses(driver):
    store = driver.store_driver
    mail = store.queue("mail", max_attempts=2, backoff=BACKOFF)
    store.send(mail, priority=7)
    store.clock.advance(ms=100)
    [message] = store.claim(mail)
    store.clock.advance(ms=10)
    store.act(Verb.RELEASE, message)
    for work_ms in (20, 30):
        store.clock.advance(ms=6_000)
        [message] = store.claim(mail)
        store.clock.advance(ms=work_ms)
        store.act(Verb.FAIL, message)
    assert store.browse(mail, State.DEAD)

    [found] = read(driver).messages

    assert found.priority == 7
    assert found.attempts == (
        RecordedAttempt(10, AttemptEnd.RETURNED, 6_000),
        RecordedAttempt(20, AttemptEnd.FAILED, 6_000),
        RecordedAttempt(30, AttemptEnd.FAILED),
    )


def test_messages_that_waited_when_the_period_began_arrive_then(driver):
    store = driver.store_driver
    mail = store.queue("mail")
    driver.finish(mail)  # the day before; it is not part of the period
    store.send(mail)
    store.clock.advance(days=1, hours=2)
    for message in store.claim(mail, 2):
        store.complete(message)
    driver.run()
    lake = LocalLake(str(driver.folder))
    today = last_day(lake, "mail")
    assert today is not None

    found = read_queue(lake, "mail", from_dt=today, to_dt=today)

    assert [message.at for message in found.messages] == [midnight_of(today)]
    assert found.wait.max_ms == 2 * HOUR


def test_messages_sent_in_the_period_belong_to_it_whenever_they_ended(driver):
    store = driver.store_driver
    mail = store.queue("mail")
    store.send(mail)
    driver.finish(mail, kind="first")
    store.clock.advance(days=2)
    store.send(mail)
    for message in store.claim(mail, 9):
        store.complete(message)

    assert len(read(driver).messages) == 2
    assert len(read(driver, days=3).messages) == 3


def test_messages_that_ended_more_than_a_week_later_are_left_out(driver):
    """So that a day of an old lake does not read all days since."""
    store = driver.store_driver
    mail = store.queue("mail")
    store.send_many(mail, 3)
    store.complete(store.claim(mail)[0])
    store.clock.advance(days=7)
    store.complete(store.claim(mail)[0])
    driver.run()
    store.clock.advance(days=1)
    store.complete(store.claim(mail)[0])
    driver.run()
    assert len(read(driver).messages) == 2

    sorted(driver.folder.glob("history/*/*.parquet"))[-1].write_bytes(b"damaged")

    assert len(read(driver).messages) == 2


def test_a_redriven_message_of_another_day_is_left_out(driver):
    store = driver.store_driver
    mail = store.queue("mail", max_attempts=1)
    store.send(mail)
    store.act(Verb.FAIL, store.claim(mail)[0])
    store.clock.advance(days=1)
    store.write(lambda s: s.messages.redrive(mail.queue_no, to=None, limit=1, now=store.now))
    store.complete(store.claim(mail)[0])
    driver.run()
    today = last_day(LocalLake(str(driver.folder)), "mail")
    assert today == dt_of(store.now)

    found = read_queue(LocalLake(str(driver.folder)), "mail", from_dt=today, to_dt=today)

    assert found.messages == []


def test_what_a_queue_uses_and_the_simulation_leaves_out_is_named(driver):
    store = driver.store_driver
    plain = store.queue("plain")
    fair = store.queue("fair", is_fair=True)
    store.send(plain)
    store.send(fair, group="g", route="/shop")
    for queue in (plain, fair):
        store.complete(store.claim(queue)[0])
    driver.snapshots.take()

    assert read(driver, "plain").not_simulated == []
    assert read(driver, "fair").not_simulated == ["circuits", "fairness", "groups"]


def test_a_redriven_message_arrives_again_when_it_is_claimed_again(driver):
    store = driver.store_driver
    mail = store.queue("mail", max_attempts=1)
    store.send(mail)
    store.act(Verb.FAIL, store.claim(mail)[0])
    store.clock.advance(hours=1)
    store.write(lambda s: s.messages.redrive(mail.queue_no, to=None, limit=1, now=store.now))
    store.clock.advance(ms=50)
    store.complete(store.claim(mail)[0])

    found = read(driver)

    assert [len(message.attempts) for message in found.messages] == [1, 1]
    assert found.wait.max_ms == 0


def test_other_queues_and_messages_that_were_never_claimed_are_not_work(driver):
    store = driver.store_driver
    mail, other = store.queue("mail"), store.queue("other")
    driver.finish(mail)
    driver.finish(other, 3)
    store.send(mail)
    store.write(lambda s: s.messages.purge(mail.queue_no, limit=10, now=store.now))

    assert len(read(driver).messages) == 1


def test_more_messages_than_fit_into_memory_are_refused(driver):
    driver.finish(driver.store_driver.queue("mail"), 3)

    with pytest.raises(PipelineStopped, match=r"more than 2 messages .* fewer days") as stopped:
        read(driver, most=2)

    assert stopped.value.code == "lake_too_large"
