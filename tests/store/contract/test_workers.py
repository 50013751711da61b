"""Workers, and the messages they have leased."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain import worker as workers
from penstock.domain.limits import MINUTE
from penstock.domain.worker import NewWorker, Worker
from tests.factories import an_id
from tests.store.driver import StoreDriver

VALID_MS = 3 * MINUTE
ODD = 'tab\t "quoted" \\ € \U0001f426'


def register(driver: StoreDriver, **about: Any) -> Worker:
    worker = workers.register(
        NewWorker(**about), worker_id=an_id(driver.now), now=driver.now, valid_ms=VALID_MS
    )
    driver.write(lambda s: s.workers.add(worker))
    return worker


def save(driver: StoreDriver, worker: Worker) -> Worker:
    driver.write(lambda s: s.workers.save(worker))
    return worker


def find(driver: StoreDriver, worker: Worker) -> Worker | None:
    return driver.read(lambda s: s.workers.find(worker.id))


def held(driver: StoreDriver, *found: Worker, queues: Any = None, limit: int = 100) -> list[str]:
    ids = [worker.id for worker in found]
    return [m.id for m in driver.read(lambda s: s.workers.leases(ids, queues=queues, limit=limit))]


def page(
    driver: StoreDriver, *, after: str = "", limit: int = 100, with_gone: bool = False
) -> list[Worker]:
    return driver.read(lambda s: s.workers.page(after=after, limit=limit, with_gone=with_gone))


def test_a_worker_is_found_as_it_was_added(driver):
    worker = register(
        driver,
        name=ODD,
        host="node-1",
        pid=2**31 - 1,
        queues=("mail", "reports"),
        kinds=(ODD,),
        slots=7,
        labels={"zone": ODD},
    )

    assert find(driver, worker) == worker
    assert find(driver, register(driver)) is not None
    assert driver.read(lambda s: s.workers.find("no-such-worker")) is None


def test_changes_of_a_worker_are_kept(driver):
    worker = register(driver)
    driver.clock.advance(minutes=1)

    beaten = save(driver, workers.beat(worker, now=driver.now, valid_ms=VALID_MS))
    assert find(driver, worker) == beaten
    drained = save(driver, workers.drain(beaten, now=driver.now))
    assert find(driver, worker) == drained
    left = save(driver, workers.leave(drained, now=driver.now))
    assert find(driver, worker) == left


def test_workers_are_listed_as_they_registered_page_by_page(driver):
    first, second, third = (register(driver) for _ in range(3))
    save(driver, workers.leave(second, now=driver.now))

    assert [w.id for w in page(driver)] == [first.id, third.id]
    assert [w.id for w in page(driver, with_gone=True)] == [first.id, second.id, third.id]
    assert [w.id for w in page(driver, limit=1)] == [first.id]
    assert [w.id for w in page(driver, after=first.id, limit=5)] == [third.id]


def test_workers_without_a_recent_heartbeat_are_overdue(driver):
    late, other = register(driver), register(driver)
    left = register(driver)
    save(driver, workers.leave(left, now=driver.now))
    driver.clock.advance(minutes=1)
    save(driver, workers.beat(other, now=driver.now, valid_ms=VALID_MS))

    def overdue() -> list[str]:
        return [w.id for w in driver.read(lambda s: s.workers.overdue(now=driver.now, limit=9))]

    driver.clock.advance(ms=2 * MINUTE - 1)
    assert overdue() == []
    driver.clock.advance(ms=1)
    assert overdue() == [late.id]
    assert driver.write(lambda s: s.workers.lock_overdue(other.id, now=driver.now)) is None
    mine = driver.write(lambda s: s.workers.lock_overdue(late.id, now=driver.now))
    assert mine == late
    save(driver, workers.lose(mine, now=driver.now))
    assert overdue() == []
    assert driver.write(lambda s: s.workers.lock_overdue(late.id, now=driver.now)) is None


def test_recently_lost_workers_are_found(driver):
    worker, other = register(driver), register(driver)
    save(driver, workers.leave(other, now=driver.now))
    driver.clock.advance(ms=VALID_MS)
    lost = save(driver, workers.lose(worker, now=driver.now))

    assert driver.read(lambda s: s.workers.lost_since((driver.now, ""), limit=9)) == [lost]
    assert driver.read(lambda s: s.workers.lost_since((driver.now, lost.id), limit=9)) == []


def test_workers_that_have_been_gone_for_long_are_forgotten(driver):
    there, left = register(driver), register(driver)
    save(driver, workers.leave(left, now=driver.now))

    assert driver.write(lambda s: s.workers.forget(before_at=driver.now)) == 0
    assert driver.write(lambda s: s.workers.forget(before_at=driver.now + 1)) == 1

    assert find(driver, left) is None
    assert find(driver, there) == there


@pytest.mark.parametrize("named", [True, False])
def test_the_leases_of_a_worker_are_found_and_no_others(driver, named):
    mail, reports = driver.queue("mail"), driver.queue("reports")
    worker, other = register(driver), register(driver)
    driver.send_many(mail, 4)
    driver.send(mail, delay_ms=MINUTE)
    driver.send(reports)
    mine = driver.claim(mail, 2, claimed_by=worker.id)
    driver.claim(mail, 1, claimed_by=other.id)
    [report] = driver.claim(reports, claimed_by=worker.id)
    driver.complete(mine[0])

    queues = ["mail", "no-such-queue"] if named else None

    expected = [mine[1].id] if named else [mine[1].id, report.id]
    assert held(driver, worker, queues=queues) == expected
    assert held(driver, worker, queues=queues, limit=1) == expected[:1]
    assert len(held(driver, worker, other, queues=queues)) == len(expected) + 1
    assert held(driver, queues=queues) == []
    assert held(driver, register(driver), queues=queues) == []


def test_a_message_claimed_under_another_name_belongs_to_no_worker(driver):
    mail = driver.queue("mail")
    worker = register(driver, name="worker-1")
    driver.send(mail)
    driver.claim(mail, claimed_by="worker-1")

    assert held(driver, worker) == []
