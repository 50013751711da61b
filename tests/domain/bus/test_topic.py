"""Topics: names, patterns of kinds, and the attributes of an event."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.bus import topic
from penstock.domain.bus.subscription import Dispatch, Subscription, wants
from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import check_name
from tests.factories import a_draft, an_id


def a_subscription(*kinds: str) -> Subscription:
    return Subscription(1, "orders", "a", 1, "orders.a", kinds, Dispatch.SHARED, 0)


@pytest.mark.parametrize(
    ("kinds", "kind", "is_wanted"),
    [
        ((), "order.placed", True),
        ((), None, True),
        (("order.*",), "order.placed", True),
        (("order.*",), "orders.placed", False),
        (("order.*",), "Order.placed", False),
        (("order.*",), None, False),
        (("*",), None, False),
        (("a", "*.paid"), "invoice.paid", True),
    ],
)
def test_a_subscription_matches_kinds_by_its_patterns(kinds, kind, is_wanted):
    assert wants(a_subscription(*kinds), kind) is is_wanted


@given(st.lists(st.text(min_size=1, max_size=5), max_size=4), st.none() | st.text(max_size=5))
def test_a_subscription_wants_the_kinds_that_any_of_its_patterns_matches(kinds, kind):
    expected = not kinds or (kind is not None and any(fnmatchcase(kind, p) for p in kinds))

    assert wants(a_subscription(*kinds), kind) is expected


NAME = st.text(alphabet="abcXYZ019_.-", min_size=1, max_size=80)


@given(NAME, NAME)
def test_every_name_of_a_queue_that_is_made_is_one(topic_name, subscription):
    try:
        made = topic.queue_name(topic_name, subscription)
    except InvalidRequest:
        return

    assert check_name(made) == f"{topic_name}.{subscription}"


@given(NAME, NAME)
def test_where_a_sticky_subscription_is_taken_every_workers_queue_has_a_name(name, subscription):
    try:
        queue = topic.queue_name(name, subscription)
        topic.check_dispatch(queue, Dispatch.STICKY)
    except InvalidRequest:
        return

    assert topic.node_queue_name(queue, an_id()).startswith(queue)


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", ".a", "a/b", "ä", "a\x00", "x" * 79])
def test_other_topic_names_are_refused(name):
    with pytest.raises(InvalidRequest):
        topic.check_topic(name)
    with pytest.raises(InvalidRequest):
        topic.queue_name("orders", name)


def test_the_attributes_of_the_bus_are_reserved():
    with pytest.raises(InvalidRequest):
        topic.check_event(a_draft(attributes={topic.EVENT_ID: "7"}))


def test_a_publish_that_would_make_too_many_messages_is_refused():
    topic.check_fan_out(topic.MAX_FAN_OUT)
    with pytest.raises(InvalidRequest):
        topic.check_fan_out(topic.MAX_FAN_OUT + 1)
