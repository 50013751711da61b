"""Topics and subscriptions, and the fan-out in one transaction."""

from functools import partial

import pytest

from penstock.domain.bus.endpoint import Endpoint
from penstock.domain.bus.subscription import Dispatch, SubscriptionSettings
from penstock.domain.bus.topic import TakenKey, TopicSettings
from penstock.domain.errors import QueueExists, QueueFull
from penstock.domain.limits import HOUR
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message
from tests.store.driver import StoreDriver


def topic(driver: StoreDriver, name: str = "orders") -> int:
    driver.write(lambda s: s.topics.add(name, now=driver.now))
    found = driver.read(lambda s: s.topics.find(name))
    assert found is not None
    return found.topic_no


def subscribe(
    driver: StoreDriver, topic_no: int, name: str, queue, *, kinds=(), dispatch=Dispatch.SHARED
):
    return driver.write(
        lambda s: s.topics.subscribe(
            topic_no, name, queue_no=queue.queue_no, kinds=kinds, dispatch=dispatch, now=driver.now
        )
    )


def names(driver: StoreDriver, topic_no: int) -> list[str]:
    return [s.name for s in driver.read(lambda s: s.topics.subscriptions(topic_no))]


def publish(driver: StoreDriver, topic_no: int, new, *, events=1, unmatched=0):
    return driver.write(
        lambda s: s.topics.publish(topic_no, new, events=events, unmatched=unmatched)
    )


def test_a_topic_is_made_once(driver):
    made = [driver.write(lambda s: s.topics.add("orders", now=driver.now)) for _ in range(2)]

    assert made == [True, False]
    found = driver.read(lambda s: s.topics.find("orders"))
    assert (found.name, found.created_at, found.published) == ("orders", driver.now, 0)


def test_topics_come_by_name_page_by_page(driver):
    for name in ("b", "c", "a", "x"):
        topic(driver, name)

    first = driver.read(lambda s: s.topics.page(prefix="", after="", limit=2))
    second = driver.read(lambda s: s.topics.page(prefix="", after="b", limit=2))
    prefixed = driver.read(lambda s: s.topics.page(prefix="x", after="", limit=2))

    assert [[t.name for t in page] for page in (first, second, prefixed)] == [
        ["a", "b"],
        ["c", "x"],
        ["x"],
    ]


def test_a_subscription_is_made_and_then_changed(driver):
    orders, queue = topic(driver), driver.queue("orders.mailer")

    assert subscribe(driver, orders, "mailer", queue, kinds=("order.*",))
    assert not subscribe(driver, orders, "mailer", queue, dispatch=Dispatch.STICKY)

    [found] = driver.read(lambda s: s.topics.subscriptions(orders))
    assert (found.topic, found.name, found.queue) == ("orders", "mailer", "orders.mailer")
    assert (found.kinds, found.dispatch) == ((), Dispatch.STICKY)


def test_a_queue_is_fed_by_one_subscription_only(driver):
    orders, others, queue = topic(driver), topic(driver, "others"), driver.queue("a.b.c")
    subscribe(driver, orders, "mailer", queue)

    with pytest.raises(QueueExists):
        subscribe(driver, others, "mailer", queue)


def test_with_its_queue_a_subscription_ends(driver):
    orders, queue = topic(driver), driver.queue("orders.mailer")
    subscribe(driver, orders, "mailer", queue)

    driver.write(lambda s: s.queues.remove(queue.queue_no, now=driver.now))

    assert names(driver, orders) == []
    again = driver.queue("orders.mailer")
    assert subscribe(driver, orders, "mailer", again)
    assert names(driver, orders) == ["mailer"]


def test_a_topic_goes_with_its_subscriptions(driver):
    orders, queue = topic(driver), driver.queue("orders.mailer")
    subscribe(driver, orders, "mailer", queue)
    publish(driver, orders, [])

    driver.write(lambda s: s.topics.remove(orders))

    assert driver.read(lambda s: s.topics.find("orders")) is None
    assert topic(driver) != orders
    assert driver.read(lambda s: s.topics.find("orders")).published == 0


def test_events_are_counted_also_without_a_subscription(driver):
    orders = topic(driver)

    publish(driver, orders, [], events=3, unmatched=2)
    publish(driver, orders, [], events=1)

    found = driver.read(lambda s: s.topics.find("orders"))
    assert (found.published, found.unmatched) == (4, 2)


def test_one_publish_puts_messages_into_many_queues(driver):
    orders = topic(driver)
    queues = [driver.queue(f"orders.{i}") for i in range(5)]

    new = [a_new_message(queue, now=driver.now) for queue in queues]
    driver.sent_ids += [n.message.id for n in new]
    answers = publish(driver, orders, new)

    assert all(isinstance(answer, Sent) for answer in answers)
    assert [driver.claim_ids(queue) for queue in queues] == [[n.message.id] for n in new]


def test_an_event_respects_the_limits_of_its_queues(driver):
    orders = topic(driver)
    limited = driver.queue("orders.limited", max_leased_per_group=1, is_fair=True)

    new = [a_new_message(limited, now=driver.now, group="g") for _ in range(2)]
    driver.sent_ids += [n.message.id for n in new]
    publish(driver, orders, new)

    assert driver.claim_ids(limited) == [new[0].message.id]


def test_the_number_of_statements_does_not_grow_with_the_subscriptions(driver):
    orders = topic(driver)
    queues = [driver.queue(f"orders.{i}") for i in range(100)]
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
            session.topics.queues_by_numbers({q.queue_no for q in some})
            new = [a_new_message(queue, now=driver.now) for queue in some]
            session.topics.publish(orders, new, events=1, unmatched=0)
        finally:
            for verb in originals:
                delattr(db, verb)
        return [n.message.id for n in new]

    driver.sent_ids += driver.write(lambda s: count(s, queues[:2]))  # which makes the day's tables
    asked.clear()
    driver.sent_ids += driver.write(lambda s: count(s, queues[:2]))
    few = len(asked)
    asked.clear()
    driver.sent_ids += driver.write(lambda s: count(s, queues))

    assert len(asked) == few


def test_messages_of_one_group_are_blocked_behind_each_other(driver):
    orders, queue = topic(driver), driver.queue("orders.mailer", ordering="group")
    sent = [a_new_message(queue, now=driver.now, group="g") for _ in range(2)]
    driver.sent_ids += [n.message.id for n in sent]

    publish(driver, orders, sent)

    assert driver.claim_ids(queue) == [sent[0].message.id]


def test_a_full_queue_is_reported(driver):
    orders, queue = topic(driver), driver.queue("orders.mailer", max_messages=1)
    driver.send(queue)

    [answer] = publish(driver, orders, [a_new_message(queue, now=driver.now)])

    assert isinstance(answer, QueueFull)


def test_queues_of_workers_are_remembered_until_they_are_removed(driver):
    orders, shared, own = topic(driver), driver.queue("orders.a"), driver.queue("orders.a--w1")
    subscribe(driver, orders, "a", shared, dispatch=Dispatch.STICKY)
    [found] = driver.read(lambda s: s.topics.subscriptions(orders))
    for _ in range(2):
        driver.write(
            lambda s: s.topics.add_node(
                own.queue_no, subscription_no=found.subscription_no, node="w1"
            )
        )

    [(node, subscription)] = driver.read(lambda s: s.topics.node_queues())
    assert (node.queue_no, node.node, subscription) == (own.queue_no, "w1", found)

    driver.write(lambda s: s.topics.unsubscribe(found.subscription_no))
    [(_, subscription)] = driver.read(lambda s: s.topics.node_queues())
    assert subscription is None

    driver.write(lambda s: s.queues.remove(own.queue_no, now=driver.now))
    assert driver.write(lambda s: s.topics.forget_nodes()) == 1
    assert driver.read(lambda s: s.topics.node_queues()) == []


def test_ready_messages_are_handed_over_in_their_order_and_the_others_stay(driver):
    own, shared = driver.queue("orders.a--w1"), driver.queue("orders.a")
    held = driver.send(own)
    driver.claim(own)
    moved = [driver.send(own), driver.send(own)]
    waiting = driver.send(own, delay_ms=HOUR)

    handed = [
        driver.write(
            lambda s: s.topics.hand_over(own.queue_no, to=shared.queue_no, limit=10, now=driver.now)
        )
        for _ in range(2)
    ]

    assert handed == [2, 0]
    assert driver.claim_ids(shared) == moved
    assert driver.browse_ids(own, State.LEASED) == [held]
    assert driver.browse_ids(own, State.WAITING) == [waiting]


def test_subscriptions_keep_their_settings_and_those_with_endpoints_are_found(driver):
    topic_no, mail = topic(driver), driver.queue("mail")
    endpoint = Endpoint(url="http://h/", signing_secrets=("a",))
    settings = SubscriptionSettings(filter='{"a": ["b"]}', endpoint=endpoint)
    subscribe(driver, topic_no, "plain", mail)
    driver.write(
        lambda s: s.topics.subscribe(
            topic_no,
            "pushed",
            queue_no=mail.queue_no,
            kinds=(),
            dispatch=Dispatch.SHARED,
            now=driver.now,
            settings=settings,
            shares_queue=True,
        )
    )

    [found] = driver.read(lambda s: s.topics.with_endpoints())
    every = driver.read(lambda s: s.topics.all_subscriptions(after=("orders", "plain"), limit=9))

    assert (found.name, found.settings) == ("pushed", settings)
    assert every == [found]


def test_an_ordered_topic_numbers_its_events_and_keeps_their_keys(driver):
    topic_no = topic(driver)

    first, second = (
        driver.write(lambda s, n=n: s.topics.number(topic_no, count=n)) for n in (2, 3)
    )
    taken = [
        driver.write(
            lambda s, key=key, now=now: s.topics.take_key(
                topic_no, key, until_at=now + HOUR, now=now
            )
        )
        for key, now in (
            (TakenKey("k", "e1", 1), driver.now),
            (TakenKey("k", "e2", 2), driver.now),
            (TakenKey("k", "e3", 3), driver.now + HOUR),
        )
    ]

    assert (first, second) == (2, 5)
    assert [one.event_id for one in taken] == ["e1", "e1", "e3"]


def test_settings_and_revisions_of_a_topic_are_kept(driver):
    topic_no = topic(driver)
    settings = TopicSettings(ordering=Ordering.GROUP, labels={"a": "b"})

    driver.write(lambda s: s.topics.change(topic_no, settings, revision=7))
    found = driver.read(lambda s: s.topics.find("orders"))
    driver.write(lambda s: s.topics.touch(topic_no, revision=8))

    assert (found.settings, found.revision) == (settings, 7)
    assert driver.write(lambda s: s.topics.to_publish("orders", now=driver.now)).revision == 8
