"""The bus: one message for each subscription, each with its own life."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from penstock import Event, Penstock, RetrySchedule
from penstock.domain.errors import InvalidRequest, QueueFull, TooLarge
from penstock.domain.history import HistoryFilter
from penstock.domain.message import State
from penstock.domain.queue import QueueSettings
from penstock.domain.topic import Dispatch
from penstock.domain.worker import NewWorker
from penstock.runtime.node_queues import NodeQueues
from tests.client.bus.hand_worker import broker_of, counts, exists
from tests.clocks import NOON


class OrderPlaced(msgspec.Struct):
    order: int


@pytest.fixture
def node_queues(app: Penstock) -> NodeQueues:
    broker = broker_of(app)
    return NodeQueues(broker.bus, broker.queues, every_ms=1_000)


def test_every_subscription_gets_every_event_once(app, worker):
    seen: list[tuple[str, int]] = []

    @app.subscribe("orders")
    def mailer(event: OrderPlaced) -> None:
        seen.append(("mailer", event.order))

    @app.subscribe("orders")
    async def audit(event: OrderPlaced) -> None:
        seen.append(("audit", event.order))

    for order in range(5):
        assert app.publish("orders", OrderPlaced(order)).messages == 2
    worker.round()

    assert sorted(seen) == sorted((name, n) for name in ("mailer", "audit") for n in range(5))
    assert worker.round() == []


def test_events_of_another_kind_are_not_delivered(app, worker):
    seen: list[str] = []

    @app.subscribe("orders", kinds="order.*")
    def orders(event: str) -> None:
        seen.append(event)

    assert app.publish("orders", "placed", kind="order.placed").messages == 1
    assert app.publish("orders", "paid", kind="invoice.paid").messages == 0
    assert app.publish("orders", "plain").messages == 0
    worker.round()

    assert seen == ["placed"]
    topic = broker_of(app).bus.get("orders").result().topic
    assert (topic.published, topic.unmatched) == (3, 2)


def test_functions_that_share_a_subscription_each_get_their_kinds(app, worker):
    seen: list[tuple[str, str]] = []

    @app.subscribe("orders", name="desk", kinds="order.placed")
    def placed(event: str) -> None:
        seen.append(("placed", event))

    @app.subscribe("orders", name="desk", kinds=["order.paid", "order.sent"])
    def rest(event: str) -> None:
        seen.append(("rest", event))

    for kind in ("order.placed", "order.paid", "order.sent", "order.lost"):
        app.publish("orders", kind, kind=kind)
    worker.round()

    assert seen == [("placed", "order.placed"), ("rest", "order.paid"), ("rest", "order.sent")]


def test_one_failing_subscriber_re_runs_nobody_else(app, worker, clock):
    """Unlike killbill, where all subscribers of an event run again."""
    calls: list[str] = []

    @app.subscribe("orders", queue={"backoff": "1s", "max_attempts": 4})
    def failing(event: int) -> None:
        calls.append("failing")
        raise ValueError("never")

    @app.subscribe("orders")
    def good(event: int) -> None:
        calls.append("good")

    app.publish("orders", 1)
    for _ in range(10):
        worker.round()
        clock.advance(seconds=1)

    assert calls.count("good") == 1
    assert calls.count("failing") == 4
    assert counts(app, "orders.failing").dead == 1
    assert counts(app, "orders.good").done_total == 1


def test_a_subscriber_that_fails_once_gets_the_event_again(app, worker, clock):
    calls: list[int] = []

    @app.subscribe("orders", retry="10s")
    def mailer(event: int, about: Event) -> None:
        calls.append(about.attempts)
        if about.attempts == 1:
            raise ValueError("not yet")

    app.publish("orders", 1)
    worker.round()
    clock.advance(seconds=10)
    worker.round()

    assert calls == [1, 2]
    assert counts(app, "orders.mailer").done_total == 1


def test_scheduled_retries_of_an_event_count_from_when_it_was_published(app, worker, clock):
    at: list[int] = []

    @app.subscribe("orders", retry=RetrySchedule(["5m", "1h", "1d"]))
    def mailer(event: int) -> None:
        at.append(clock.now() - NOON)
        if len(at) < 4:
            raise ValueError("not yet")

    app.publish("orders", 1, tags=("a1",))
    worker.round()
    for after in ({"minutes": 5}, {"minutes": 55}, {"hours": 23}):
        clock.advance(**after)
        worker.round()

    minute = 60_000
    assert at == [0, 5 * minute, 60 * minute, 24 * 60 * minute]
    [ending] = broker_of(app).insight.history(HistoryFilter(tag="a1")).result()
    assert (ending.outcome, ending.failures) == (State.DONE, 3)


def test_the_handler_is_told_which_event_it_is(app, worker):
    seen: list[Event] = []

    @app.subscribe("orders", name="one")
    def one(event: int, about: Event) -> None:
        seen.append(about)

    @app.subscribe("orders", name="two")
    def two(event: int, about: Event) -> None:
        seen.append(about)

    published = app.publish("orders", 1, kind="order.placed", tags=("a1", "t1"), group="g")
    worker.round()

    assert seen[0] == seen[1]
    assert seen[0].id == published.id
    assert (seen[0].topic, seen[0].kind) == ("orders", "order.placed")
    assert (seen[0].tags, seen[0].group) == (("a1", "t1"), "g")


def test_a_later_subscription_gets_later_events_only(app, worker):
    seen: list[int] = []
    app.publish("orders", 1)

    @app.subscribe("orders")
    def late(event: int) -> None:
        seen.append(event)

    app.publish("orders", 2)
    worker.round()

    assert seen == [2]


def test_an_event_that_nobody_wants_is_counted_and_no_error(app):
    assert app.publish("orders", 1).messages == 0

    topic = broker_of(app).bus.get("orders").result().topic
    assert (topic.published, topic.unmatched) == (1, 1)


def test_a_thousand_subscriptions_get_an_event_at_once(app):
    broker = broker_of(app)

    def all_of_them(session):
        for n in range(1_000):
            broker.bus.subscribing("orders", f"s{n}")(session)

    # One transaction, so that the test is quick.
    broker.store.write(all_of_them).result()

    assert app.publish("orders", 1).messages == 1_000
    assert broker.insight.stats().result().counts.ready == 1_000
    with pytest.raises(InvalidRequest, match="at most 1000"):
        broker.bus.subscribe("orders", "one-more").result()
    with pytest.raises(InvalidRequest, match="11000 messages"):
        app.publish_many("orders", list(range(11)))


def test_if_one_subscription_cannot_take_it_none_gets_it(app):
    broker = broker_of(app)
    broker.bus.subscribe("orders", "good").result()
    full = QueueSettings(max_messages=1)
    broker.bus.subscribe("orders", "full", settings=full).result()
    app.publish("orders", 1)

    with pytest.raises(QueueFull):
        app.publish("orders", 2)

    assert counts(app, "orders.good").ready == 1
    assert broker.bus.get("orders").result().topic.published == 1


def test_an_event_too_large_for_one_subscription_reaches_none(app):
    broker = broker_of(app)
    broker.bus.subscribe("orders", "good").result()
    broker.bus.subscribe("orders", "small", settings=QueueSettings(max_body_bytes=5)).result()

    with pytest.raises(TooLarge):
        app.publish("orders", "more than five bytes")

    assert counts(app, "orders.good").ready == 0


def test_many_events_are_published_together_or_not_at_all(app):
    broker = broker_of(app)
    broker.bus.subscribe("orders", "a", settings=QueueSettings(max_messages=3)).result()

    with pytest.raises(QueueFull):
        app.publish_many("orders", [1, 2, 3, 4])
    assert [p.messages for p in app.publish_many("orders", [1, 2, 3])] == [1, 1, 1]

    assert counts(app, "orders.a").ready == 3


def test_an_event_published_twice_under_one_key_is_one(app):
    for name in ("a", "b"):
        broker_of(app).bus.subscribe("orders", name).result()

    first = app.publish("orders", 1, dedup_key="order-1")
    again = app.publish("orders", 1, dedup_key="order-1")

    assert (first.messages, first.duplicates) == (2, 0)
    assert (again.messages, again.duplicates) == (0, 2)
    assert counts(app, "orders.a").ready == 1


def test_events_of_one_group_stay_in_order_where_the_queue_says_so(app, worker, clock):
    seen: list[int] = []
    failed: list[int] = []

    @app.subscribe("orders", queue={"ordering": "group", "backoff": "1s"})
    def ordered(event: int) -> None:
        if event == 1 and not failed:
            failed.append(event)
            raise ValueError("later")
        seen.append(event)

    app.work_source()  # whoever works first makes the queue as it is declared
    for n in range(4):
        app.publish("orders", n, group="customer-1")
    for _ in range(10):
        worker.round()
        clock.advance(seconds=1)

    assert seen == [0, 1, 2, 3]


def test_unsubscribed_the_queue_stays_or_goes_as_one_says(app):
    bus = broker_of(app).bus
    for name in ("stays", "goes"):
        bus.subscribe("orders", name).result()
    app.publish("orders", 1)

    bus.unsubscribe("orders", "stays").result()
    bus.unsubscribe("orders", "goes", with_queue=True).result()
    app.publish("orders", 2)

    assert counts(app, "orders.stays").ready == 1
    assert not exists(app, "orders.goes")
    [ending] = broker_of(app).insight.history(HistoryFilter(queue="orders.goes")).result()
    assert ending.outcome is State.CANCELLED


# --- refusals ---


@pytest.mark.parametrize(
    ("topic", "settings", "text"),
    [
        ("no spaces", {}, "topic's name"),
        ("orders", {"name": "no spaces"}, "subscription's name"),
        ("x" * 50, {"name": "y" * 50}, "together"),
        ("orders", {"name": "a", "kinds": [""]}, "pattern"),
        ("orders", {"name": "a", "kinds": ["x"] * 51}, "patterns"),
        ("orders", {"name": "a", "dispatch": "loud"}, "shared or sticky"),
    ],
)
def test_a_subscription_that_makes_no_sense_is_refused(topic, settings, text):
    app = Penstock("sqlite:///nowhere.db")

    with pytest.raises(InvalidRequest, match=text):

        @app.subscribe(topic, **settings)
        def handler(event: int) -> None:
            pass


def test_a_sticky_subscription_leaves_room_for_the_id_of_a_worker(app):
    bus = broker_of(app).bus

    with pytest.raises(InvalidRequest, match="41 characters"):
        bus.subscribe("t" * 20, "s" * 22, dispatch=Dispatch.STICKY)
    bus.subscribe("t" * 20, "s" * 22).result()
    bus.subscribe("t" * 20, "s" * 21, dispatch=Dispatch.STICKY).result()
    node = broker_of(app).workers.register(NewWorker()).result().id
    assert app.publish("t" * 20, 1, node=node).messages == 2


def test_the_attributes_of_the_bus_are_its_own(app):
    with pytest.raises(InvalidRequest, match=r"event\.topic"):
        app.publish("orders", 1, attributes={"event.topic": "x"})


def test_an_event_is_published_on_an_event_loop_too(app):
    broker_of(app).bus.subscribe("orders", "a").result()

    published = asyncio.run(app.publish_async("orders", 1))

    assert published.messages == 1
    assert counts(app, "orders.a").ready == 1
