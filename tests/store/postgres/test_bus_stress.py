"""Events published, handed over, changed and cancelled at once, without deadlocks."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from penstock.domain.bus.subscription import Dispatch
from penstock.domain.errors import MessageNotFound, WrongState
from penstock.domain.limits import DAY, DEFAULT_LIMITS
from penstock.domain.message import notification
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.notification import Change
from penstock.ports.store import Session
from penstock.ports.topics import Tagged
from tests.factories import a_new_message
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver
from tests.store.postgres.helpers import at_once

TURNS = 60
GROUPS = "abcd"


def publish(driver: StoreDriver, queues, topic_no: int, seed: int) -> None:
    for n in range(TURNS):
        some = queues if (seed + n) % 2 else queues[::-1]
        new = [
            a_new_message(q, now=driver.now, group=GROUPS[(seed + n + i) % 4], tags=(f"t{n % 3}",))
            for i, q in enumerate(some)
        ]

        def do(session, new=new):
            session.topics.to_publish("orders", now=driver.now)
            session.topics.queues_by_numbers({n.message.queue_no for n in new})
            session.topics.publish(topic_no, new, events=1, unmatched=0)

        driver.write(do)
        driver.sent_ids += [n.message.id for n in new]


def finish(driver: StoreDriver, queue) -> None:
    for _ in range(TURNS):
        for message in driver.claim(queue, 3):
            driver.complete(message)


def cancel(driver: StoreDriver, queue) -> None:
    def some(session: Session, wanted: Tagged) -> int:
        return session.tagged.cancel(wanted, queue_no=queue.queue_no, reason="gone", now=driver.now)

    for n in range(TURNS):
        driver.write(partial(some, wanted=Tagged(tag1=f"t{n % 3}", limit=5)))


def change(driver: StoreDriver) -> None:
    def how(message, content, queue):
        wanted = Change(body='"new"', tags=("changed",))
        return notification.change(
            message, content, queue, wanted, now=driver.now, limits=DEFAULT_LIMITS
        )

    def look(session: Session, wanted: Tagged) -> list[Message]:
        return session.tagged.find(wanted)

    def rewrite(session: Session, message_id: str) -> Message:
        return session.tagged.rewrite(message_id, how, now=driver.now)

    for n in range(TURNS):
        wanted = Tagged(tag1=f"t{n % 3}", states=(State.WAITING, State.READY), limit=2)
        for found in driver.read(partial(look, wanted=wanted)):
            with suppress(WrongState, MessageNotFound):  # another thread was faster
                driver.write(partial(rewrite, message_id=found.id))


def hand_over(driver: StoreDriver, own, shared) -> None:
    for _ in range(TURNS):
        driver.write(
            lambda s: s.topics.hand_over(own.queue_no, to=shared.queue_no, limit=5, now=driver.now)
        )


def test_events_are_published_handed_over_changed_and_cancelled_at_once(drivers, backed_off):
    first, second = drivers
    queues = [first.queue(f"orders.{i}", ordering="group", lease_ms=DAY) for i in range(3)]
    first.write(lambda s: s.topics.add("orders", now=first.now))
    topic_no = first.read(lambda s: s.topics.find("orders")).topic_no
    for i, queue in enumerate(queues):
        first.write(
            lambda s, i=i, q=queue: s.topics.subscribe(
                topic_no,
                f"{i}",
                queue_no=q.queue_no,
                kinds=(),
                dispatch=Dispatch.SHARED,
                now=first.now,
            )
        )

    at_once(
        lambda: publish(first, queues, topic_no, 0),
        lambda: publish(second, queues, topic_no, 1),
        lambda: finish(first, queues[0]),
        lambda: cancel(second, queues[1]),
        lambda: change(first),
        lambda: hand_over(second, queues[2], queues[0]),
    )

    first.sent_ids += second.sent_ids
    check_counters(first)
    assert first.read(lambda s: s.topics.find("orders")).published == 2 * TURNS
    for queue in queues:
        while held := first.claim(queue, 100):
            for message in held:
                first.complete(message)
        assert first.counts(queue).live == 0
    check_counters(first)
    assert backed_off == []
