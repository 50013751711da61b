"""The bus: one message per subscription, each handled independently."""

from __future__ import annotations

import msgspec
import pytest

from penstock import Event, Penstock, RetrySchedule
from penstock.domain.bus.subscription import Dispatch
from penstock.domain.errors import InvalidRequest, QueueFull, TooLarge
from penstock.domain.message.history import HistoryFilter
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.worker import NewWorker
from tests.client.bus.driver import counts, exists


class OrderPlaced(msgspec.Struct):
    order: int


def test_every_subscription_gets_every_event_once(app, worker, topic):
    seen: list[tuple[str, int]] = []

    @app.subscribe(topic)
    def mailer(event: OrderPlaced) -> None:
        seen.append(("mailer", event.order))

    @app.subscribe(topic)
    async def audit(event: OrderPlaced) -> None:
        seen.append(("audit", event.order))

    for order in range(5):
        assert app.publish(topic, OrderPlaced(order)).messages == 2
    worker.round()

    assert sorted(seen) == sorted((name, n) for name in ("mailer", "audit") for n in range(5))
    assert worker.round() == []


def test_events_of_another_kind_are_not_delivered(app, worker, broker, topic):
    seen: list[str] = []

    @app.subscribe(topic, kinds="order.*")
    def orders(event: str) -> None:
        seen.append(event)

    assert app.publish(topic, "placed", kind="order.placed").messages == 1
    assert app.publish(topic, "paid", kind="invoice.paid").messages == 0
    assert app.publish(topic, "plain").messages == 0
    worker.round()

    assert seen == ["placed"]
    topic = broker.topics.get(topic).result().topic
    assert (topic.published, topic.unmatched) == (3, 2)


def test_functions_that_share_a_subscription_each_get_their_kinds(app, worker, topic):
    seen: list[tuple[str, str]] = []

    @app.subscribe(topic, name="accounts", kinds="order.placed")
    def placed(event: str) -> None:
        seen.append(("placed", event))

    @app.subscribe(topic, name="accounts", kinds=["order.paid", "order.sent"])
    def rest(event: str) -> None:
        seen.append(("rest", event))

    for kind in ("order.placed", "order.paid", "order.sent", "order.lost"):
        app.publish(topic, kind, kind=kind)
    worker.round()

    assert seen == [("placed", "order.placed"), ("rest", "order.paid"), ("rest", "order.sent")]


def test_a_failing_subscriber_does_not_rerun_the_others(app, worker, clock, broker, topic, queue):
    """Unlike killbill, where all subscribers of an event run again."""
    calls: list[str] = []

    @app.subscribe(topic, queue={"backoff": "1s", "max_attempts": 4})
    def failing(event: int) -> None:
        calls.append("failing")
        raise ValueError("never")

    @app.subscribe(topic)
    def good(event: int) -> None:
        calls.append("good")

    app.publish(topic, 1)
    for _ in range(10):
        worker.round()
        clock.advance(seconds=1)

    assert calls.count("good") == 1
    assert calls.count("failing") == 4
    assert counts(broker, f"{topic}.failing").dead == 1
    assert counts(broker, f"{topic}.good").done_total == 1


def test_a_subscriber_that_fails_once_gets_the_event_again(app, worker, clock, broker, topic):
    calls: list[int] = []

    @app.subscribe(topic, retry="10s")
    def mailer(event: int, about: Event) -> None:
        calls.append(about.attempts)
        if about.attempts == 1:
            raise ValueError("not yet")

    app.publish(topic, 1)
    worker.round()
    clock.advance(seconds=10)
    worker.round()

    assert calls == [1, 2]
    assert counts(broker, f"{topic}.mailer").done_total == 1


def test_scheduled_retries_of_an_event_count_from_when_it_was_published(
    app, worker, clock, broker, topic, account, start
):
    at: list[int] = []

    @app.subscribe(topic, retry=RetrySchedule(["5m", "1h", "1d"]))
    def mailer(event: int) -> None:
        at.append(clock.now() - start)
        if len(at) < 4:
            raise ValueError("not yet")

    app.publish(topic, 1, tags=(account,))
    worker.round()
    for after in ({"minutes": 5}, {"minutes": 55}, {"hours": 23}):
        clock.advance(**after)
        worker.round()

    minute = 60_000
    assert at == [0, 5 * minute, 60 * minute, 24 * 60 * minute]
    [ending] = broker.history.history(HistoryFilter(tag=account)).result()
    assert (ending.outcome, ending.failures) == (State.DONE, 3)


def test_the_handler_knows_which_event_it_is(app, worker, topic, account, tenant):
    seen: list[Event] = []

    @app.subscribe(topic, name="one")
    def one(event: int, about: Event) -> None:
        seen.append(about)

    @app.subscribe(topic, name="two")
    def two(event: int, about: Event) -> None:
        seen.append(about)

    published = app.publish(topic, 1, kind="order.placed", tags=(account, tenant), group="g")
    worker.round()

    assert seen[0] == seen[1]
    assert seen[0].id == published.id
    assert (seen[0].topic, seen[0].kind) == (topic, "order.placed")
    assert (seen[0].tags, seen[0].group) == ((account, tenant), "g")


def test_a_later_subscription_gets_later_events_only(app, worker, topic):
    seen: list[int] = []
    app.publish(topic, 1)

    @app.subscribe(topic)
    def late(event: int) -> None:
        seen.append(event)

    app.publish(topic, 2)
    worker.round()

    assert seen == [2]


def test_an_event_without_subscribers_is_counted_and_is_not_an_error(app, broker, topic):
    assert app.publish(topic, 1).messages == 0

    topic = broker.topics.get(topic).result().topic
    assert (topic.published, topic.unmatched) == (1, 1)


@pytest.mark.environments("volume")
def test_a_thousand_subscriptions_get_an_event_at_once(app, broker, topic):

    def all_of_them(session):
        for n in range(1_000):
            broker.topics.subscribe(topic, f"s{n}").within(session)

    # One transaction, so that the test is quick.
    broker.store.write(all_of_them).result()

    assert app.publish(topic, 1).messages == 1_000
    queues = broker.queues.page(prefix=f"{topic}.", limit=1_001).result()
    assert [queue.counts.ready for queue in queues] == [1] * 1_000
    with pytest.raises(InvalidRequest, match="at most 1000"):
        broker.topics.subscribe(topic, "one-more").result()
    with pytest.raises(InvalidRequest, match="11000 messages"):
        app.publish_many(topic, list(range(11)))


def test_if_one_subscription_cannot_take_it_none_gets_it(app, broker, topic):
    broker.topics.subscribe(topic, "good").result()
    full = QueueSettings(max_messages=1)
    broker.topics.subscribe(topic, "full", settings=full).result()
    app.publish(topic, 1)

    with pytest.raises(QueueFull):
        app.publish(topic, 2)

    assert counts(broker, f"{topic}.good").ready == 1
    assert broker.topics.get(topic).result().topic.published == 1


def test_an_event_too_large_for_one_subscription_reaches_none(app, broker, topic):
    broker.topics.subscribe(topic, "good").result()
    broker.topics.subscribe(topic, "small", settings=QueueSettings(max_body_bytes=5)).result()

    with pytest.raises(TooLarge):
        app.publish(topic, "more than five bytes")

    assert counts(broker, f"{topic}.good").ready == 0


def test_many_events_are_published_together_or_not_at_all(app, broker, topic):
    broker.topics.subscribe(topic, "a", settings=QueueSettings(max_messages=3)).result()

    with pytest.raises(QueueFull):
        app.publish_many(topic, [1, 2, 3, 4])
    assert [p.messages for p in app.publish_many(topic, [1, 2, 3])] == [1, 1, 1]

    assert counts(broker, f"{topic}.a").ready == 3


def test_an_event_published_twice_under_one_key_is_one(app, broker, topic):
    for name in ("a", "b"):
        broker.topics.subscribe(topic, name).result()

    first = app.publish(topic, 1, dedup_key="order-1")
    again = app.publish(topic, 1, dedup_key="order-1")

    assert (first.messages, first.duplicates) == (2, 0)
    assert (again.messages, again.duplicates) == (0, 2)
    assert counts(broker, f"{topic}.a").ready == 1


def test_events_of_one_group_stay_in_order_in_a_queue_ordered_by_group(
    app, worker, clock, topic, queue
):
    seen: list[int] = []
    failed: list[int] = []

    @app.subscribe(topic, queue={"ordering": "group", "backoff": "1s"})
    def ordered(event: int) -> None:
        if event == 1 and not failed:
            failed.append(event)
            raise ValueError("later")
        seen.append(event)

    app.job_source()  # the first worker creates the queue as it is declared
    for n in range(4):
        app.publish(topic, n, group="customer-1")
    for _ in range(10):
        worker.round()
        clock.advance(seconds=1)

    assert seen == [0, 1, 2, 3]


def test_unsubscribing_keeps_or_removes_the_queue_as_requested(app, broker, topic, queue):
    bus = broker.topics
    for name in ("stays", "goes"):
        bus.subscribe(topic, name).result()
    app.publish(topic, 1)

    bus.unsubscribe(topic, "stays").result()
    bus.unsubscribe(topic, "goes", with_queue=True).result()
    app.publish(topic, 2)

    assert counts(broker, f"{topic}.stays").ready == 1
    assert not exists(broker, f"{topic}.goes")
    [ending] = broker.history.history(HistoryFilter(queue=f"{topic}.goes")).result()
    assert ending.outcome is State.CANCELLED


# --- rejections ---


@pytest.mark.no_store("declaring")
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
def test_an_invalid_subscription_is_refused(topic, settings, text):
    app = Penstock("sqlite:///nowhere.db")

    with pytest.raises(InvalidRequest, match=text):

        @app.subscribe(topic, **settings)
        def handler(event: int) -> None:
            pass


def test_a_sticky_subscription_leaves_room_for_the_id_of_a_worker(app, broker):
    bus = broker.topics

    with pytest.raises(InvalidRequest, match="41 characters"):
        bus.subscribe("t" * 20, "s" * 22, dispatch=Dispatch.STICKY)
    bus.subscribe("t" * 20, "s" * 22).result()
    bus.subscribe("t" * 20, "s" * 21, dispatch=Dispatch.STICKY).result()
    node = broker.workers.register(NewWorker()).result().id
    assert app.publish("t" * 20, 1, node=node).messages == 2


def test_the_attributes_of_the_bus_are_its_own(app, topic):
    with pytest.raises(InvalidRequest, match=r"event\.topic"):
        app.publish(topic, 1, attributes={"event.topic": "x"})


async def test_an_event_is_published_on_an_event_loop_too(app, broker, topic):
    broker.topics.subscribe(topic, "a").result()

    published = await app.publish_async(topic, 1)

    assert published.messages == 1
    assert counts(broker, f"{topic}.a").ready == 1


def test_a_filter_decides_which_events_a_handler_gets(app, broker, topic):
    @app.subscribe(topic, name="eu", filter={"region": [{"prefix": "eu-"}]})
    def handle(event: int) -> None:
        pass

    @app.subscribe(topic, name="paid", filter={"state": ["paid"]}, filter_scope="body")
    def handle_paid(event: dict) -> None:
        pass

    assert app.publish(topic, 1, attributes={"region": "eu-west"}).messages == 1
    assert app.publish(topic, {"state": "paid"}, attributes={"region": "us"}).messages == 1
    assert app.publish(topic, {"state": "open"}).messages == 0
    assert counts(broker, f"{topic}.eu").ready == counts(broker, f"{topic}.paid").ready == 1


@pytest.mark.no_store("declaring")
def test_functions_of_one_subscription_have_one_filter():
    app = Penstock("sqlite:///nowhere.db")
    app.subscribe("orders", name="a", kinds="b", filter={"x": ["y"]})(lambda event: None)

    with pytest.raises(InvalidRequest, match="another filter"):
        app.subscribe("orders", name="a", kinds="c")(lambda event: None)
