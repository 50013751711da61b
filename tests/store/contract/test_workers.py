"""Workers as rows, and what they hold."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain import worker as workers
from penstock.domain.limits import MINUTE
from penstock.domain.worker import NewWorker, Worker
from tests.factories import an_id
from tests.store.desk import Desk

VALID_MS = 3 * MINUTE
ODD = 'tab\t "quoted" \\ € \U0001f426'


def register(desk: Desk, **about: Any) -> Worker:
    worker = workers.register(
        NewWorker(**about), worker_id=an_id(desk.now), now=desk.now, valid_ms=VALID_MS
    )
    desk.write(lambda s: s.workers.add(worker))
    return worker


def save(desk: Desk, worker: Worker) -> Worker:
    desk.write(lambda s: s.workers.save(worker))
    return worker


def find(desk: Desk, worker: Worker) -> Worker | None:
    return desk.read(lambda s: s.workers.find(worker.id))


def held(desk: Desk, *found: Worker, queues: Any = None, limit: int = 100) -> list[str]:
    ids = [worker.id for worker in found]
    return [m.id for m in desk.read(lambda s: s.workers.held(ids, queues=queues, limit=limit))]


def page(desk: Desk, *, after: str = "", limit: int = 100, with_gone: bool = False) -> list[Worker]:
    return desk.read(lambda s: s.workers.page(after=after, limit=limit, with_gone=with_gone))


def test_a_worker_is_found_as_it_was_added(desk):
    worker = register(
        desk,
        name=ODD,
        host="node-1",
        pid=2**31 - 1,
        queues=("mail", "reports"),
        kinds=(ODD,),
        slots=7,
        labels={"zone": ODD},
    )

    assert find(desk, worker) == worker
    assert find(desk, register(desk)) is not None
    assert desk.read(lambda s: s.workers.find("no-such-worker")) is None


def test_what_happens_to_a_worker_is_kept(desk):
    worker = register(desk)
    desk.clock.advance(minutes=1)

    beaten = save(desk, workers.beat(worker, now=desk.now, valid_ms=VALID_MS))
    assert find(desk, worker) == beaten
    drained = save(desk, workers.drain(beaten, now=desk.now))
    assert find(desk, worker) == drained
    left = save(desk, workers.leave(drained, now=desk.now))
    assert find(desk, worker) == left


def test_workers_are_listed_as_they_registered_page_by_page(desk):
    first, second, third = (register(desk) for _ in range(3))
    save(desk, workers.leave(second, now=desk.now))

    assert [w.id for w in page(desk)] == [first.id, third.id]
    assert [w.id for w in page(desk, with_gone=True)] == [first.id, second.id, third.id]
    assert [w.id for w in page(desk, limit=1)] == [first.id]
    assert [w.id for w in page(desk, after=first.id, limit=5)] == [third.id]


def test_those_that_were_not_heard_of_in_time_are_overdue(desk):
    late, other = register(desk), register(desk)
    left = register(desk)
    save(desk, workers.leave(left, now=desk.now))
    desk.clock.advance(minutes=1)
    save(desk, workers.beat(other, now=desk.now, valid_ms=VALID_MS))

    def overdue() -> list[str]:
        return [w.id for w in desk.read(lambda s: s.workers.overdue(now=desk.now, limit=9))]

    desk.clock.advance(ms=2 * MINUTE - 1)
    assert overdue() == []
    desk.clock.advance(ms=1)
    assert overdue() == [late.id]
    assert desk.write(lambda s: s.workers.to_lose(other.id, now=desk.now)) is None
    mine = desk.write(lambda s: s.workers.to_lose(late.id, now=desk.now))
    assert mine == late
    save(desk, workers.lose(mine, now=desk.now))
    assert overdue() == []
    assert desk.write(lambda s: s.workers.to_lose(late.id, now=desk.now)) is None


def test_those_that_were_lost_a_moment_ago_can_be_looked_for(desk):
    worker, other = register(desk), register(desk)
    save(desk, workers.leave(other, now=desk.now))
    desk.clock.advance(ms=VALID_MS)
    lost = save(desk, workers.lose(worker, now=desk.now))

    assert desk.read(lambda s: s.workers.lost_since((desk.now, ""), limit=9)) == [lost]
    assert desk.read(lambda s: s.workers.lost_since((desk.now, lost.id), limit=9)) == []


def test_those_that_have_gone_long_ago_are_forgotten(desk):
    there, left = register(desk), register(desk)
    save(desk, workers.leave(left, now=desk.now))

    assert desk.write(lambda s: s.workers.forget(before_at=desk.now)) == 0
    assert desk.write(lambda s: s.workers.forget(before_at=desk.now + 1)) == 1

    assert find(desk, left) is None
    assert find(desk, there) == there


@pytest.mark.parametrize("named", [True, False])
def test_what_a_worker_holds_is_found_and_nothing_else(desk, named):
    mail, reports = desk.queue("mail"), desk.queue("reports")
    worker, other = register(desk), register(desk)
    desk.send_many(mail, 4)
    desk.send(mail, delay_ms=MINUTE)
    desk.send(reports)
    mine = desk.claim(mail, 2, claimed_by=worker.id)
    desk.claim(mail, 1, claimed_by=other.id)
    [report] = desk.claim(reports, claimed_by=worker.id)
    desk.complete(mine[0])

    queues = ["mail", "no-such-queue"] if named else None

    expected = [mine[1].id] if named else [mine[1].id, report.id]
    assert held(desk, worker, queues=queues) == expected
    assert held(desk, worker, queues=queues, limit=1) == expected[:1]
    assert len(held(desk, worker, other, queues=queues)) == len(expected) + 1
    assert held(desk, queues=queues) == []
    assert held(desk, register(desk), queues=queues) == []


def test_what_was_claimed_under_another_name_is_nobodys(desk):
    mail = desk.queue("mail")
    worker = register(desk, name="worker-1")
    desk.send(mail)
    desk.claim(mail, claimed_by="worker-1")

    assert held(desk, worker) == []
