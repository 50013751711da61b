"""Topics and subscriptions as they are kept, and the fan-out in one transaction."""

from functools import partial

import pytest

from penstock.domain.errors import QueueExists, QueueFull
from penstock.domain.limits import HOUR
from penstock.domain.message.lifecycle import State
from penstock.domain.topic import Dispatch
from penstock.ports.store import Sent
from tests.factories import a_new_message
from tests.store.desk import Desk


def topic(desk: Desk, name: str = "orders") -> int:
    desk.write(lambda s: s.topics.add(name, now=desk.now))
    found = desk.read(lambda s: s.topics.find(name))
    assert found is not None
    return found.topic_no


def subscribe(desk: Desk, topic_no: int, name: str, queue, *, kinds=(), dispatch=Dispatch.SHARED):
    return desk.write(
        lambda s: s.topics.subscribe(
            topic_no, name, queue_no=queue.queue_no, kinds=kinds, dispatch=dispatch, now=desk.now
        )
    )


def names(desk: Desk, topic_no: int) -> list[str]:
    return [s.name for s in desk.read(lambda s: s.topics.subscriptions(topic_no))]


def publish(desk: Desk, topic_no: int, new, *, events=1, unmatched=0):
    return desk.write(lambda s: s.topics.publish(topic_no, new, events=events, unmatched=unmatched))


def test_a_topic_is_made_once(desk):
    made = [desk.write(lambda s: s.topics.add("orders", now=desk.now)) for _ in range(2)]

    assert made == [True, False]
    found = desk.read(lambda s: s.topics.find("orders"))
    assert (found.name, found.created_at, found.published) == ("orders", desk.now, 0)


def test_topics_come_by_name_page_by_page(desk):
    for name in ("b", "c", "a", "x"):
        topic(desk, name)

    first = desk.read(lambda s: s.topics.page(prefix="", after="", limit=2))
    second = desk.read(lambda s: s.topics.page(prefix="", after="b", limit=2))
    prefixed = desk.read(lambda s: s.topics.page(prefix="x", after="", limit=2))

    assert [[t.name for t in page] for page in (first, second, prefixed)] == [
        ["a", "b"],
        ["c", "x"],
        ["x"],
    ]


def test_a_subscription_is_made_and_then_changed(desk):
    orders, queue = topic(desk), desk.queue("orders.mailer")

    assert subscribe(desk, orders, "mailer", queue, kinds=("order.*",))
    assert not subscribe(desk, orders, "mailer", queue, dispatch=Dispatch.STICKY)

    [found] = desk.read(lambda s: s.topics.subscriptions(orders))
    assert (found.topic, found.name, found.queue) == ("orders", "mailer", "orders.mailer")
    assert (found.kinds, found.dispatch) == ((), Dispatch.STICKY)


def test_a_queue_is_fed_by_one_subscription_only(desk):
    orders, others, queue = topic(desk), topic(desk, "others"), desk.queue("a.b.c")
    subscribe(desk, orders, "mailer", queue)

    with pytest.raises(QueueExists):
        subscribe(desk, others, "mailer", queue)


def test_with_its_queue_a_subscription_ends(desk):
    orders, queue = topic(desk), desk.queue("orders.mailer")
    subscribe(desk, orders, "mailer", queue)

    desk.write(lambda s: s.queues.remove(queue.queue_no, now=desk.now))

    assert names(desk, orders) == []
    again = desk.queue("orders.mailer")
    assert subscribe(desk, orders, "mailer", again)
    assert names(desk, orders) == ["mailer"]


def test_a_topic_goes_with_its_subscriptions(desk):
    orders, queue = topic(desk), desk.queue("orders.mailer")
    subscribe(desk, orders, "mailer", queue)
    publish(desk, orders, [])

    desk.write(lambda s: s.topics.remove(orders))

    assert desk.read(lambda s: s.topics.find("orders")) is None
    assert topic(desk) != orders
    assert desk.read(lambda s: s.topics.find("orders")).published == 0


def test_events_are_counted_those_nobody_wanted_too(desk):
    orders = topic(desk)

    publish(desk, orders, [], events=3, unmatched=2)
    publish(desk, orders, [], events=1)

    found = desk.read(lambda s: s.topics.find("orders"))
    assert (found.published, found.unmatched) == (4, 2)


def test_one_publish_puts_messages_into_many_queues(desk):
    orders = topic(desk)
    queues = [desk.queue(f"orders.{i}") for i in range(5)]

    new = [a_new_message(queue, now=desk.now) for queue in queues]
    desk.sent_ids += [n.message.id for n in new]
    answers = publish(desk, orders, new)

    assert all(isinstance(answer, Sent) for answer in answers)
    assert [desk.claim_ids(queue) for queue in queues] == [[n.message.id] for n in new]


def test_an_event_keeps_to_the_limits_of_a_queue_it_comes_into(desk):
    orders = topic(desk)
    limited = desk.queue("orders.limited", max_leased_per_group=1, is_fair=True)

    new = [a_new_message(limited, now=desk.now, group="g") for _ in range(2)]
    desk.sent_ids += [n.message.id for n in new]
    publish(desk, orders, new)

    assert desk.claim_ids(limited) == [new[0].message.id]


def test_the_number_of_statements_does_not_grow_with_the_subscriptions(desk):
    orders = topic(desk)
    queues = [desk.queue(f"orders.{i}") for i in range(100)]
    asked: list[str] = []

    def note(do, name, *args, **options):
        asked.append(name)
        return do(name, *args, **options)

    def count(session, some):
        db = session.db
        originals = {name: getattr(db, name) for name in ("rows", "ask", "run", "post", "insert")}
        for verb, original in originals.items():
            setattr(db, verb, partial(note, original))
        try:
            session.topics.queues_of({q.queue_no for q in some})
            new = [a_new_message(queue, now=desk.now) for queue in some]
            session.topics.publish(orders, new, events=1, unmatched=0)
        finally:
            for verb in originals:
                delattr(db, verb)
        return [n.message.id for n in new]

    desk.sent_ids += desk.write(lambda s: count(s, queues[:2]))  # which makes the day's tables
    asked.clear()
    desk.sent_ids += desk.write(lambda s: count(s, queues[:2]))
    few = len(asked)
    asked.clear()
    desk.sent_ids += desk.write(lambda s: count(s, queues))

    assert len(asked) == few


def test_messages_of_one_group_are_blocked_behind_each_other(desk):
    orders, queue = topic(desk), desk.queue("orders.mailer", ordering="group")
    sent = [a_new_message(queue, now=desk.now, group="g") for _ in range(2)]
    desk.sent_ids += [n.message.id for n in sent]

    publish(desk, orders, sent)

    assert desk.claim_ids(queue) == [sent[0].message.id]


def test_a_full_queue_is_told_as_such(desk):
    orders, queue = topic(desk), desk.queue("orders.mailer", max_messages=1)
    desk.send(queue)

    [answer] = publish(desk, orders, [a_new_message(queue, now=desk.now)])

    assert isinstance(answer, QueueFull)


def test_queues_of_workers_are_remembered_until_they_are_removed(desk):
    orders, shared, own = topic(desk), desk.queue("orders.a"), desk.queue("orders.a--w1")
    subscribe(desk, orders, "a", shared, dispatch=Dispatch.STICKY)
    [found] = desk.read(lambda s: s.topics.subscriptions(orders))
    for _ in range(2):
        desk.write(
            lambda s: s.topics.add_node(
                own.queue_no, subscription_no=found.subscription_no, node="w1"
            )
        )

    [(node, subscription)] = desk.read(lambda s: s.topics.node_queues())
    assert (node.queue_no, node.node, subscription) == (own.queue_no, "w1", found)

    desk.write(lambda s: s.topics.unsubscribe(found.subscription_no))
    [(_, subscription)] = desk.read(lambda s: s.topics.node_queues())
    assert subscription is None

    desk.write(lambda s: s.queues.remove(own.queue_no, now=desk.now))
    assert desk.write(lambda s: s.topics.forget_nodes()) == 1
    assert desk.read(lambda s: s.topics.node_queues()) == []


def test_what_is_ready_is_handed_over_in_its_order_and_the_rest_stays(desk):
    own, shared = desk.queue("orders.a--w1"), desk.queue("orders.a")
    held = desk.send(own)
    desk.claim(own)
    moved = [desk.send(own), desk.send(own)]
    waiting = desk.send(own, delay_ms=HOUR)

    handed = [
        desk.write(
            lambda s: s.topics.hand_over(own.queue_no, to=shared.queue_no, limit=10, now=desk.now)
        )
        for _ in range(2)
    ]

    assert handed == [2, 0]
    assert desk.claim_ids(shared) == moved
    assert desk.browse_ids(own, State.LEASED) == [held]
    assert desk.browse_ids(own, State.WAITING) == [waiting]
