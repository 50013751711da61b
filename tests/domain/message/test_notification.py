"""Notifications: attributes, changes and retry dates."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InvalidRequest, TooLarge, WrongState
from penstock.domain.limits import DAY, DEFAULT_LIMITS, HOUR, MAX_INSTANT, MINUTE
from penstock.domain.message import notification
from penstock.domain.message.lifecycle import Content, State
from penstock.domain.message.notification import Change, RetrySchedule
from tests.clocks import NOON
from tests.factories import a_draft, a_message_in, a_queue


def planned(**fields):
    given_: dict[str, Any] = {"due_at": NOON + DAY, "user_token": "u", "future_token": "f"}
    return notification.as_notification(a_draft(), **(given_ | fields))


def changed(message, **what):
    content = Content('"old"', planned().attributes, "trace")
    return notification.change(
        message, content, a_queue(), Change(**what), now=NOON, limits=DEFAULT_LIMITS
    )


def test_the_date_and_the_tokens_are_attributes():
    assert planned().attributes == {
        notification.PLANNED_AT: str(NOON + DAY),
        notification.USER_TOKEN: "u",
        notification.FUTURE_TOKEN: "f",
    }
    assert planned().due_at == NOON + DAY
    assert notification.planned_at(planned().attributes) == NOON + DAY


@pytest.mark.parametrize("attributes", [None, {}, {notification.PLANNED_AT: "soon"}])
def test_a_message_without_a_recorded_date_is_not_a_notification(attributes):
    assert notification.planned_at(attributes) is None


@pytest.mark.parametrize("state", [State.WAITING, State.READY])
def test_a_queued_notification_keeps_what_a_change_does_not_name(state):
    before = a_message_in(state, kind="k", tag1="a", tag2="b")

    same = changed(before, body='"new"')
    other = changed(before, tags=("c",), kind="l", due_at=NOON + HOUR)

    assert (same.content.body, same.message.tag1, same.message.kind) == ('"new"', "a", "k")
    assert (same.message.due_at, same.message.state) == (before.due_at, before.state)
    assert notification.planned_at(same.content.attributes) == NOON + DAY
    assert (other.message.tag1, other.message.tag2, other.message.kind) == ("c", None, "l")
    assert (other.message.due_at, other.message.state) == (NOON + HOUR, State.WAITING)
    assert notification.planned_at(other.content.attributes) == NOON + HOUR
    assert other.content.body == '"old"'


@pytest.mark.parametrize("state", [State.LEASED, State.DEAD])
def test_elsewhere_nothing_is_changed(state):
    with pytest.raises(WrongState):
        changed(a_message_in(state), body='"new"')


def test_a_change_is_checked_like_a_new_notification():
    with pytest.raises(InvalidRequest):
        changed(a_message_in(State.WAITING), tags=("a", "b", "c"))
    with pytest.raises(TooLarge):
        changed(a_message_in(State.WAITING), body='"' + "x" * DEFAULT_LIMITS.max_body_bytes + '"')


@given(
    st.lists(st.integers(0, 366 * DAY), max_size=10),
    st.integers(1, 12),
    st.integers(-10 * DAY, 400 * DAY),
)
def test_the_nth_retry_is_due_at_the_original_date_plus_the_nth_duration(offsets, failures, late):
    schedule = RetrySchedule([timedelta(milliseconds=offset) for offset in offsets])

    in_ms = schedule.retry_in_ms(planned_at=NOON, failures=failures, now=NOON + late)

    if failures > len(offsets):
        assert in_ms is None
    else:
        assert in_ms is not None
        assert NOON + late + in_ms == max(NOON + late, NOON + offsets[failures - 1])


def test_a_schedule_describes_itself():
    assert repr(RetrySchedule(["1h", timedelta(minutes=1)])) == "RetrySchedule(['1h', '1m'])"
    assert RetrySchedule(["90s"]).offsets_ms == (90 * MINUTE // 60,)


@pytest.mark.parametrize("text", ["", "tomorrow", "-1", "٣", "9" * 5_000, str(MAX_INSTANT + 1)])
def test_an_invalid_instant_is_not_the_date_of_a_notification(text: str) -> None:
    """Any sender may write attributes."""
    assert notification.planned_at({notification.PLANNED_AT: text}) is None
