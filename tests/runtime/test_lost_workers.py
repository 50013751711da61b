"""Workers whose beats stop are lost, and their messages become ready at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.domain.bus.subscription import Dispatch
from penstock.domain.bus.topic import node_queue_name
from penstock.domain.errors import WorkerGone, WorkerNotFound
from penstock.domain.fact import Fact, FactFilter
from penstock.domain.limits import DAY, DEFAULT_LIMITS, HOUR, MINUTE
from penstock.domain.message.draft import Draft
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import QUARANTINED, State
from penstock.domain.queue.queue import Queue
from penstock.domain.worker import NewWorker, Worker, WorkerState
from penstock.outbound.dice import SystemDice
from penstock.runtime import worker_duties
from penstock.runtime.duties import Pruner
from penstock.runtime.worker_duties import WorkerReaper
from penstock.services import workers as services
from penstock.services.bus import Bus
from penstock.services.directory import Directory
from penstock.services.topics import TopicService
from penstock.services.workers import WorkerService
from tests.store.backends import Open
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

EVERY_MS = 2_000
VALID_MS = 3 * MINUTE


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail", lease_ms=HOUR, max_attempts=None)


@pytest.fixture
def workers(driver: StoreDriver) -> WorkerService:
    return make(driver)


@pytest.fixture
def reaper(workers: WorkerService) -> WorkerReaper:
    return WorkerReaper(workers, every_ms=EVERY_MS)


def make(driver: StoreDriver, **more: Any) -> WorkerService:
    return WorkerService(
        driver.store, driver.clock, SystemDice(), DEFAULT_LIMITS, valid_ms=VALID_MS, **more
    )


def register(workers: WorkerService, **about: Any) -> Worker:
    return workers.register(NewWorker(**about)).result()


def facts(driver: StoreDriver, **wanted: Any) -> list[Fact]:
    """Oldest first."""
    return driver.read(lambda s: s.facts.search(FactFilter(**wanted)))[::-1]


def state(workers: WorkerService, worker: Worker) -> WorkerState:
    return workers.get(worker.id).result().state


def test_a_worker_is_known_by_a_new_id_each_time_it_registers(workers):
    first, second = (register(workers, name="same", host="same", pid=1) for _ in range(2))

    assert first.id != second.id
    assert {worker.id for worker in workers.all().result()} == {first.id, second.id}


def test_beats_keep_a_worker_alive_for_ever(driver, workers, reaper):
    worker = register(workers)
    for _ in range(10):
        driver.clock.advance(ms=VALID_MS - 1)
        assert workers.beat(worker.id).result().beat_at == driver.now
        reaper.tick(driver.now)

    assert state(workers, worker) is WorkerState.ACTIVE


def test_a_worker_that_is_unknown_has_left_or_was_lost_must_register_again(driver, workers, reaper):
    left, lost, late = (register(workers) for _ in range(3))
    workers.leave(left.id).result()
    driver.clock.advance(ms=VALID_MS)
    assert workers.beat(late.id).result() is None, "too late, although it is not marked as lost yet"
    reaper.tick(driver.now)

    for worker_id in (left.id, lost.id, "unknown"):
        assert workers.beat(worker_id).result() is None
        with pytest.raises(WorkerGone):
            workers.alive(worker_id).result()
    with pytest.raises(WorkerNotFound):
        workers.get("unknown").result()
    assert workers.all().result() == []


def test_a_lost_workers_messages_can_be_claimed_at_once(driver, mail, workers, reaper):
    worker = register(workers, name="mailer", host="node-1", pid=4711)
    other = register(workers)
    ids = driver.send_many(mail, 3)
    driver.claim(mail, 2, claimed_by=worker.id)
    [kept] = driver.claim(mail, 1, claimed_by=other.id)
    driver.clock.advance(minutes=1)
    workers.beat(other.id).result()
    driver.clock.advance(minutes=2)

    next_due = reaper.tick(driver.now)

    assert next_due == driver.now + EVERY_MS
    assert state(workers, worker) is WorkerState.LOST
    assert state(workers, other) is WorkerState.ACTIVE
    again = driver.claim(mail, 9)
    assert [m.id for m in again] == ids[:2], "in their old places"
    assert {m.attempts for m in again} == {2}
    assert {m.crashes for m in again} == {1}
    assert driver.get(kept.id).state is State.LEASED
    check_counters(driver)


def test_the_message_shows_what_is_known_of_the_lost_worker(driver, mail, workers, reaper):
    worker = register(workers, name="mailer", host="node-1", pid=4711)
    message_id = driver.send(mail)
    driver.claim(mail, claimed_by=worker.id)
    driver.clock.advance(ms=VALID_MS)

    reaper.tick(driver.now)

    [attempt] = driver.attempts(message_id)
    assert attempt.outcome is AttemptOutcome.CRASHED
    assert attempt.leased_by == worker.id
    assert attempt.error == driver.get(message_id).last_error
    for known in ("mailer", worker.id, "host node-1", "pid 4711", "2030-03-14T12:00:00.000Z"):
        assert known in str(attempt.error)


def test_a_message_that_loses_one_worker_after_the_other_is_quarantined(
    driver, mail, workers, reaper
):
    message_id = driver.send(mail)
    for _ in range(3):
        worker = register(workers)
        driver.claim(mail, claimed_by=worker.id)
        driver.clock.advance(ms=VALID_MS)
        reaper.tick(driver.now)

    dead = driver.get(message_id)
    assert (dead.state, dead.reason, dead.crashes) == (State.DEAD, QUARANTINED, 3)
    assert worker.id in str(dead.last_error)


def test_only_the_queues_that_a_worker_has_named_are_searched(driver, mail, workers, reaper):
    driver.queue("reports")
    worker = register(workers, queues=("reports", "no-such-queue"))
    driver.send(mail)
    driver.claim(mail, claimed_by=worker.id)
    driver.clock.advance(ms=VALID_MS)

    reaper.tick(driver.now)

    assert driver.counts(mail).leased == 1, "its lease runs out by itself"


def test_events_that_a_lost_worker_published_for_itself_are_moved_too(driver, workers, reaper):
    limits = DEFAULT_LIMITS
    store, dice = driver.store, SystemDice()
    bus = Bus(store, driver.clock, dice, limits)
    topics = TopicService(store, driver.clock, dice, Directory(store, driver.clock))
    topics.subscribe("orders", "mailer", dispatch=Dispatch.STICKY).result()
    worker = register(workers, queues=("orders.mailer",))
    bus.publish("orders", [Draft(body="1")], node=worker.id).result()
    own = driver.read(lambda s: s.queues.find(node_queue_name("orders.mailer", worker.id)))
    assert own is not None
    [held] = driver.claim(own, lease_ms=HOUR, claimed_by=worker.id)
    driver.clock.advance(ms=VALID_MS)

    reaper.tick(driver.now)

    assert driver.get(held.id).state is State.READY


def test_a_queue_shared_by_all_workers_is_searched_although_it_was_not_named(driver, mail):
    workers = make(driver, shared_queues=("mail",))
    worker = register(workers, queues=("reports",))
    driver.send(mail)
    driver.claim(mail, claimed_by=worker.id)
    driver.clock.advance(ms=VALID_MS)

    WorkerReaper(workers, every_ms=EVERY_MS).tick(driver.now)

    assert driver.counts(mail).ready == 1


def test_a_claim_in_progress_when_its_worker_was_lost_comes_back_too(driver, mail, workers, reaper):
    worker = register(workers)
    driver.clock.advance(ms=VALID_MS)
    reaper.tick(driver.now)
    driver.send(mail)
    driver.claim(mail, claimed_by=worker.id)

    reaper.tick(driver.clock.advance(ms=EVERY_MS))

    assert driver.counts(mail).ready == 1


def test_many_leases_come_back_in_chunks(
    driver, mail, workers, reaper, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(services, "MAX_LEASES", 2)
    monkeypatch.setattr(worker_duties, "MAX_LEASES", 2)
    monkeypatch.setattr(worker_duties, "_CHUNKS_PER_TICK", 2)
    worker = register(workers)
    driver.send_many(mail, 5)
    driver.claim(mail, 5, claimed_by=worker.id)
    driver.clock.advance(ms=VALID_MS)

    asks_again_in = [reaper.tick(driver.now) - driver.now for _ in range(2)]

    assert asks_again_in == [1, EVERY_MS]
    assert driver.counts(mail).ready == 5


def test_however_many_workers_are_lost_at_once_all_that_they_held_comes_back(
    driver, mail, workers, reaper, monkeypatch
):
    monkeypatch.setattr(services, "_MAX_LOST", 2)
    driver.send_many(mail, 5)
    for _ in range(5):
        driver.claim(mail, claimed_by=register(workers).id)
    driver.clock.advance(ms=VALID_MS)

    for _ in range(5):
        driver.clock.advance(ms=reaper.tick(driver.now) - driver.now)

    assert len(driver.claim(mail, 9)) == 5


def test_one_of_several_nodes_marks_a_worker_as_lost(driver, mail, workers, open_store: Open):
    worker = register(workers)
    message_id = driver.send(mail)
    driver.claim(mail, claimed_by=worker.id)
    driver.clock.advance(ms=VALID_MS)
    store = open_store() if driver.store.backend == "postgres" else driver.store
    there = WorkerService(store, driver.clock, SystemDice(), DEFAULT_LIMITS, valid_ms=VALID_MS)

    nodes = [WorkerReaper(node, every_ms=EVERY_MS) for node in (workers, there)]
    for node in nodes + nodes:
        node.tick(driver.now)

    assert [fact.kind for fact in facts(driver, subject=worker.id)] == [
        "worker_registered",
        "worker_lost",
    ]
    assert driver.get(message_id).crashes == 1
    if store is not driver.store:
        store.close()


def test_facts_record_a_workers_life(driver, workers, reaper):
    leaving = register(workers, name="a", host="node-1", pid=1, queues=("mail",), slots=3)
    lost = register(workers, name="b")
    workers.drain(leaving.id).result()
    workers.drain(leaving.id).result()
    workers.leave(leaving.id).result()
    workers.leave(leaving.id).result()
    driver.clock.advance(ms=VALID_MS)
    reaper.tick(driver.now)

    recorded = facts(driver, subject=leaving.id)
    assert [fact.kind for fact in recorded] == [
        "worker_registered",
        "worker_drained",
        "worker_left",
    ]
    assert json.loads(recorded[0].data) == {
        "name": "a",
        "host": "node-1",
        "pid": 1,
        "queues": ["mail"],
        "kinds": [],
        "slots": 3,
        "labels": {},
    }
    [_, loss] = facts(driver, subject=lost.id)
    assert (loss.kind, loss.at) == ("worker_lost", driver.now)
    assert json.loads(loss.data)["beat_at"] == lost.beat_at


def test_the_list_shows_how_many_leases_each_worker_holds(driver, mail, workers):
    busy, idle = register(workers), register(workers)
    driver.send_many(mail, 3)
    held = driver.claim(mail, 2, claimed_by=busy.id)
    driver.claim(mail, 1, claimed_by="another")

    listed = {view.worker.id: view.holding for view in workers.page().result()}

    assert listed == {busy.id: 2, idle.id: 0}
    leases = workers.leases_of(busy).result()
    assert [(lease.queue, lease.message.id) for lease in leases] == [("mail", m.id) for m in held]


def test_workers_that_have_left_are_pruned_with_the_history(driver, workers, reaper):
    left, there = register(workers), register(workers)
    workers.leave(left.id).result()
    pruner = Pruner(driver.store, retention_days=7)

    driver.clock.advance(days=7, ms=-HOUR)
    pruner.tick(driver.now)
    assert workers.find(left.id).result() is not None
    assert len(facts(driver)) == 3

    driver.clock.advance(ms=DAY)
    pruner.tick(driver.now)
    assert workers.find(left.id).result() is None
    assert workers.find(there.id).result() is not None, "it was not marked as lost"
    assert facts(driver) == []


def test_without_lost_workers_nothing_is_written(driver, workers, reaper):
    register(workers)

    assert reaper.tick(driver.now) == driver.now + EVERY_MS
