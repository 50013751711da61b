"""Several nodes supervise the same workers."""

import psycopg

from penstock.domain.limits import DEFAULT_LIMITS, HOUR, MINUTE
from penstock.domain.worker import NewWorker, WorkerState
from penstock.outbound.dice import SystemDice
from penstock.runtime.worker_duties import WorkerReaper
from penstock.services.workers import WorkerService
from tests.store.postgres.helpers import at_once, by_hand

VALID_MS = 3 * MINUTE
LOCK_ROW = "SELECT 1 FROM worker WHERE worker_id = '{}' FOR UPDATE"


def workers_of(driver):
    return WorkerService(
        driver.store, driver.clock, SystemDice(), DEFAULT_LIMITS, valid_ms=VALID_MS
    )


def test_a_worker_that_another_node_has_locked_is_skipped(driver, postgres_url):
    workers = workers_of(driver)
    busy, lost = (workers.register(NewWorker()).result() for _ in range(2))
    driver.clock.advance(ms=VALID_MS)

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(busy.id).encode())

        assert workers.lose_overdue(now=driver.now).result() == 1

    assert workers.get(busy.id).result().state is WorkerState.ACTIVE
    assert workers.get(lost.id).result().state is WorkerState.LOST


def test_many_nodes_mark_each_worker_as_lost_once_and_release_its_leases_once(
    drivers, postgres_url
):
    mail = drivers[0].queue("mail", lease_ms=HOUR, max_attempts=None)
    workers = [workers_of(driver) for driver in drivers]
    lost = [workers[0].register(NewWorker(queues=("mail",))).result() for _ in range(20)]
    ids = drivers[0].send_many(mail, 60)
    for worker in lost:
        drivers[0].claim(mail, 3, claimed_by=worker.id)
    now = drivers[0].clock.advance(ms=VALID_MS)

    reapers = [WorkerReaper(node, every_ms=1_000) for node in workers for _ in range(2)]
    at_once(*(lambda reaper=reaper: reaper.tick(now) for reaper in reapers))
    for reaper in reapers:
        reaper.tick(now)

    facts = by_hand(postgres_url, "SELECT subject FROM fact WHERE kind = 'worker_lost'")
    assert sorted(facts) == sorted((worker.id,) for worker in lost)
    again = drivers[1].claim(mail, 100)
    assert sorted(m.id for m in again) == sorted(ids)
    assert {(m.crashes, m.attempts) for m in again} == {(1, 2)}
