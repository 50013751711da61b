"""Everything at once in ordered queues, on two nodes, without deadlocks.

`backed_off` counts collisions that were retried, so that no caller saw them.
"""

from contextlib import suppress

import pytest

from penstock.domain.errors import MessageNotFound, MoveRunning, QueueNotFound, WrongState
from penstock.domain.limits import DAY
from penstock.domain.message import lifecycle
from penstock.domain.message import move_task as move
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import DedupUntil, Queue
from penstock.outbound.dice import SystemDice
from penstock.services.bulk.moves import MoveService
from penstock.services.directory import Directory
from penstock.services.queues import QueueService
from penstock.store.verbs.transaction_state import json_list
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.postgres.helpers import at_once

TURNS = 100
GROUPS = "abcdef"
HELD = (DedupUntil.CLAIMED, DedupUntil.ENDED)


@pytest.fixture
def orders(drivers):
    """A queue ordered by group, and its dead-letter queue, too.  One attempt per message."""
    letters = drivers[0].queue("letters", ordering="group", lease_ms=DAY)
    orders = drivers[0].queue(
        "orders", ordering="group", lease_ms=DAY, max_attempts=2, dead_letter_queue="letters"
    )
    return orders, letters


def send(driver: StoreDriver, queue, seed: int) -> None:
    for n in range(TURNS):
        pair = [GROUPS[(seed + n) % 6], GROUPS[(seed + 3 * n + 1) % 6]]
        key = None if n % 3 else f"{n % 7}"  # some are duplicates, until a purge forgets the key
        # … or until the message is claimed or has ended, whatever does that first.
        until = None if key is None else (None, *HELD)[n // 3 % 3]
        with_both = [
            driver.submit_send(queue, group=group, dedup_key=key, dedup_until=until)
            for group in pair
        ]
        for ticket in with_both:
            ticket.result(WAIT_S)


def finish(driver: StoreDriver, queue, seed: int) -> None:
    """Claim some and end them together, in any order; a purge may have been faster."""
    for n in range(TURNS):
        held = driver.claim(queue, 2 + n % 5, in_a_row=(seed + n) % 2 == 0)
        tickets = []
        for i, m in enumerate(held if n % 3 else reversed(held)):
            verb = (Verb.COMPLETE, Verb.FAIL, Verb.COMPLETE, Verb.BURY)[(seed + n + i) % 4]
            tickets.append(driver.submit_act(verb, m))
        for ticket in tickets:
            ticket.result(WAIT_S)


def repeat(driver: StoreDriver, what) -> None:
    for _ in range(TURNS):
        driver.write(what)


def bury(message: Message, _: Queue) -> Message:
    return lifecycle.bury(message)


def cancel(message: Message, _: Queue) -> Message:
    return lifecycle.cancel(message)


def alter_some(driver: StoreDriver, queue) -> None:
    for n in range(TURNS):
        for message in driver.browse(queue, State.READY, limit=3)[:: 1 if n % 2 else -1]:
            with suppress(WrongState, MessageNotFound):  # another thread was faster
                driver.alter(message.id, bury if n % 3 else cancel)


def check_all(drivers: list[StoreDriver], queues: list[Queue]) -> None:
    """The counters balance, and no group is stuck: everything left can be claimed and completed."""
    first, second = drivers
    first.sent_ids += second.sent_ids
    check_counters(first)
    first.clock.advance(days=2)
    for queue in queues:
        while held := first.claim(queue, 100):
            for m in held:
                first.complete(m)
        assert first.counts(queue).live == 0
    check_counters(first)
    assert held_keys(first, queues) == []


def held_keys(driver: StoreDriver, queues: list[Queue]) -> list:
    """Keys that are still taken although no message and no window is left."""
    keys = [(queue.queue_no, str(n)) for queue in queues for n in range(7)]
    driver.clock.advance(days=1000)
    driver.write(lambda s: s.maintenance.forget_dedup(now=driver.now, limit=1_000))

    def known(session):
        return session.db.rows("dedup.known", {"keys": json_list(keys)})

    return driver.write(known)


def test_purges_sends_claims_and_acts(drivers, orders, backed_off):
    queue, letters = orders
    now = drivers[0].now

    def purge(session) -> None:
        session.messages.purge(queue.queue_no, limit=7, now=now)
        session.messages.forget_keys(queue.queue_no, limit=7)

    at_once(
        *(lambda i=i: send(drivers[i % 2], queue, i) for i in range(3)),
        *(lambda i=i: finish(drivers[i % 2], queue, i) for i in range(4)),
        lambda: alter_some(drivers[0], queue),
        *(lambda d=d: repeat(d, purge) for d in drivers),
        lambda: repeat(drivers[1], lambda s: s.messages.purge(letters.queue_no, limit=3, now=now)),
    )

    assert backed_off == []
    check_all(drivers, [queue, letters])


def test_redrives_acts_and_sweeps(drivers, orders, backed_off):
    queue, letters = orders
    now = drivers[0].now

    def redrive(session) -> int:
        return session.messages.redrive(letters.queue_no, to=None, limit=5, now=now)

    def sweep(session) -> None:
        for no in (queue.queue_no, letters.queue_no):
            session.maintenance.return_due(no, now=now + DAY, limit=20)
            session.maintenance.expire(no, now=now, limit=20)

    at_once(
        *(lambda i=i: send(drivers[i % 2], queue, i) for i in range(2)),
        *(lambda i=i: finish(drivers[i % 2], queue, i) for i in range(3)),
        *(lambda i=i: finish(drivers[i % 2], letters, i) for i in range(2)),
        *(lambda d=d: repeat(d, redrive) for d in drivers),
        *(lambda d=d: repeat(d, sweep) for d in drivers),
        lambda: alter_some(drivers[1], letters),
    )

    assert backed_off == []
    check_all(drivers, [queue, letters])


def test_moves_acts_and_purges(drivers, orders, backed_off, monkeypatch):
    monkeypatch.setattr(move, "CHUNK", 5)
    queue, letters = orders
    now = drivers[0].now
    nodes = [MoveService(d.store, d.clock, SystemDice()) for d in drivers]

    def move_on(node: MoveService, source: str, target: str) -> None:
        for _ in range(TURNS):
            with suppress(MoveRunning):
                node.start(source, target=target).result(WAIT_S)
            for task_id in node.active().result(WAIT_S):
                node.step(task_id, now=now).result(WAIT_S)

    at_once(
        *(lambda i=i: send(drivers[i % 2], queue, i) for i in range(2)),
        *(lambda i=i: finish(drivers[i % 2], queue, i) for i in range(2)),
        *(lambda i=i: finish(drivers[i % 2], letters, i) for i in range(2)),
        lambda: move_on(nodes[0], "orders", "letters"),
        lambda: move_on(nodes[1], "letters", "orders"),
        lambda: repeat(drivers[0], lambda s: s.messages.purge(letters.queue_no, limit=4, now=now)),
    )

    assert backed_off == []
    check_all(drivers, [queue, letters])


def test_removals_in_the_middle_of_everything(drivers, orders, backed_off):
    queue, letters = orders
    nodes = [QueueService(d.store, d.clock, Directory(d.store, d.clock)) for d in drivers]
    others = {
        f"q{n}": drivers[0].queue(
            f"q{n}", ordering="group", lease_ms=DAY, dead_letter_queue="orders"
        )
        for n in range(6)
    }
    for other in others.values():
        drivers[0].send_many(other, 5, group="a")

    def remove(node: QueueService, names: list[str]) -> None:
        for name in names:
            node.remove(name, force=True).result(WAIT_S)

    def use(driver: StoreDriver, seed: int) -> None:
        for n in range(TURNS):
            other = others[f"q{n % 6}"]
            with suppress(QueueNotFound):
                driver.submit_send(other, group="a").result(WAIT_S)
                for m in driver.claim(other, 3, in_a_row=True):
                    driver.act((Verb.COMPLETE, Verb.BURY)[seed % 2], m)

    at_once(
        lambda: remove(nodes[0], ["q0", "q2", "q4"]),
        lambda: remove(nodes[1], ["q1", "q3", "q5"]),
        *(lambda i=i: use(drivers[i % 2], i) for i in range(3)),
        *(lambda i=i: finish(drivers[i % 2], queue, i) for i in range(2)),
    )

    assert backed_off == []
    check_all(drivers, [queue, letters])
