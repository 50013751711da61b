"""ReceiveMessage: which messages a receive gets, and their attributes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import Any

import pytest

from penstock.edge.sqs.rules import body as body_rules
from tests.clocks import ManualClock
from tests.edge.api import Api
from tests.edge.conftest import InBackground, MakeServer
from tests.edge.live import LiveServer
from tests.edge.native.waiting import SOON_S, waiting_claims
from tests.edge.raw import Raw, request
from tests.edge.sqs.aws import ACCOUNT, Aws, name_of, refused
from tests.support.waiting import eventually

pytestmark = pytest.mark.both_stores

Start = Callable[..., Future[list[str]]]

SYSTEM = {
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
}


def test_an_empty_queue_gives_no_member_for_messages(aws: Aws, queue: str) -> None:
    assert aws.client.receive_message(QueueUrl=queue).keys() == {"ResponseMetadata"}


def test_one_message_is_received_unless_more_are_asked_for(aws: Aws, queue: str) -> None:
    aws.send_all(queue, *"abcdefghijkl")

    [first] = aws.client.receive_message(QueueUrl=queue)["Messages"]

    assert first["Body"] == "a"
    assert aws.bodies(queue, 10) == list("bcdefghijk")
    assert aws.bodies(queue, 10) == ["l"]
    assert aws.bodies(queue, 10) == []


@pytest.mark.parametrize("wrong", [0, 11, -1])
def test_at_most_ten_messages_are_received(aws: Aws, queue: str, wrong: int) -> None:
    with refused(
        "InvalidParameterValue",
        f"Value {wrong} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 "
        "and 10, if provided.",
    ):
        aws.receive(queue, wrong)


@pytest.mark.parametrize("wrong", [-1, 21])
def test_a_receive_waits_at_most_twenty_seconds(aws: Aws, queue: str, wrong: int) -> None:
    with refused(
        "InvalidParameterValue",
        f"Value {wrong} for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, "
        "if provided.",
    ):
        aws.receive(queue, WaitTimeSeconds=wrong)


@pytest.mark.parametrize("wrong", [-1, 43_201])
def test_visibility_timeouts_have_their_range(aws: Aws, queue: str, wrong: int) -> None:
    with refused("InvalidParameterValue"):
        aws.receive(queue, VisibilityTimeout=wrong)


def test_an_attempt_id_is_for_fifo_queues(aws: Aws, queue: str) -> None:
    with refused(
        "InvalidParameterValue",
        "Value x for parameter ReceiveRequestAttemptId is invalid. Reason: The request include "
        "parameter that is not valid for this queue type.",
    ):
        aws.receive(queue, ReceiveRequestAttemptId="x")


# --- system attributes ---


def test_all_system_attributes(aws: Aws, queue: str, clock: ManualClock) -> None:
    sent_at = clock.now()
    aws.send(queue)
    clock.advance(ms=1234)

    got = aws.receive_one(queue, AttributeNames=["All"])

    assert got["Attributes"] == {
        "SenderId": ACCOUNT,
        "SentTimestamp": str(sent_at),
        "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": str(clock.now()),
    }


def test_the_first_receive_is_remembered_and_every_one_is_counted(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    first = clock.now()

    for count in (1, 2, 3):
        got = aws.receive_one(queue, AttributeNames=["All"], VisibilityTimeout=5)
        assert got["Attributes"]["ApproximateReceiveCount"] == str(count)
        assert got["Attributes"]["ApproximateFirstReceiveTimestamp"] == str(first)
        clock.advance(seconds=5)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, set()),
        ({"AttributeNames": ["SentTimestamp"]}, {"SentTimestamp"}),
        ({"MessageSystemAttributeNames": ["SenderId"]}, {"SenderId"}),
        ({"MessageSystemAttributeNames": ["All"]}, SYSTEM),
        ({"AttributeNames": ["SenderId", "All"]}, SYSTEM),
        ({"AttributeNames": ["ALL"]}, set()),
        ({"AttributeNames": ["Nonsense", "MessageGroupId"]}, set()),
        ({"AttributeNames": ["All"], "MessageSystemAttributeNames": ["SenderId"]}, {"SenderId"}),
    ],
)
def test_only_requested_system_attributes_are_returned(
    aws: Aws, queue: str, wanted: dict, expected: set
) -> None:
    aws.send(queue)

    got = aws.receive_one(queue, **wanted)

    assert set(got.get("Attributes", {})) == expected
    assert ("Attributes" in got) is bool(expected)


# --- message attributes ---


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, ""),
        ([], ""),
        (["All"], "a a.b a.c abc b"),
        ([".*"], "a a.b a.c abc b"),
        (["*"], "a a.b a.c abc b"),
        (["a.*"], "a a.b a.c abc"),
        (["a.b.*"], "a.b"),
        (["b", "nonsense"], "b"),
        (["a.b", "b"], "a.b b"),
        (["ALL"], ""),
        (["not allowed!", ""], ""),
    ],
)
def test_only_requested_message_attributes_are_returned(
    aws: Aws, queue: str, wanted: Any, expected: str
) -> None:
    names = ("a", "a.b", "a.c", "abc", "b")
    attributes = {name: {"DataType": "String", "StringValue": name} for name in names}
    sent = aws.send(queue, MessageAttributes=attributes)
    given = {} if wanted is None else {"MessageAttributeNames": wanted}

    got = aws.receive_one(queue, **given)

    chosen = set(expected.split())
    assert set(got.get("MessageAttributes", {})) == chosen
    assert ("MessageAttributes" in got) is bool(chosen)
    if not chosen:
        assert "MD5OfMessageAttributes" not in got
    elif len(chosen) == len(names):
        assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    else:
        assert got["MD5OfMessageAttributes"] != sent["MD5OfMessageAttributes"]


def test_the_digest_covers_the_returned_attributes(aws: Aws, queue: str) -> None:
    both = {name: {"DataType": "String", "StringValue": "x"} for name in ("k", "l")}
    aws.send(queue, MessageAttributes=both)

    got = aws.receive_one(queue, MessageAttributeNames=["k"])

    assert got["MD5OfMessageAttributes"] == "a45daa70926828a2f0a1db3418e6feb4"


# --- order ---


def test_the_oldest_comes_first_and_what_comes_back_has_its_place(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send_all(queue, "a", "b", "c")
    assert aws.bodies(queue, 2, VisibilityTimeout=5) == ["a", "b"]
    aws.send(queue, "d")

    clock.advance(seconds=5)

    assert aws.bodies(queue) == ["a", "b", "c", "d"]


def test_with_no_visibility_timeout_a_message_stays_visible(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)

    counts = [
        aws.receive_one(queue, VisibilityTimeout=0, AttributeNames=["All"])["Attributes"][
            "ApproximateReceiveCount"
        ]
        for _ in range(3)
    ]

    assert counts == ["1", "2", "3"]
    assert aws.counts(queue) == (1, 0, 0)


def test_a_receive_gives_no_message_twice(aws: Aws, queue: str) -> None:
    aws.send_all(queue, "a", "b")

    assert aws.bodies(queue, 10, VisibilityTimeout=0) == ["a", "b"]


def test_every_receive_makes_a_new_handle(aws: Aws, queue: str) -> None:
    aws.send(queue)

    handles = {aws.handle(queue, VisibilityTimeout=0) for _ in range(3)}

    assert len(handles) == 3


# --- long polls ---


@pytest.fixture
def start(aws: Aws, api: Api, in_background: InBackground) -> Start:
    """Start a receive; returns when it waits."""

    def do(queue: str, **wanted: Any) -> Future[list[str]]:
        before = waiting_claims(api)
        bodies = in_background(aws.bodies, queue, **wanted)
        eventually(lambda: waiting_claims(api) == before + 1)
        return bodies

    return do


def test_a_waiting_receive_gets_a_message_sent_meanwhile(
    aws: Aws, queue: str, start: Start
) -> None:
    waiting = start(queue, WaitTimeSeconds=20)

    aws.send(queue, "at last")

    assert waiting.result(SOON_S) == ["at last"]


def test_a_receive_that_may_wait_returns_available_messages_at_once(aws: Aws, queue: str) -> None:
    aws.send(queue)

    assert aws.bodies(queue, 10, WaitTimeSeconds=20) == ["hello"]


def test_a_queue_can_set_the_wait_for_all_receives(aws: Aws, start: Start) -> None:
    queue = aws.make(ReceiveMessageWaitTimeSeconds=20)
    waiting = start(queue)

    assert aws.receive(queue, WaitTimeSeconds=0) == []  # unless the request waits
    aws.send(queue)

    assert waiting.result(SOON_S) == ["hello"]


def test_a_waiting_receive_gets_a_message_that_was_released(
    aws: Aws, queue: str, start: Start
) -> None:
    aws.send(queue)
    handle = aws.handle(queue)
    waiting = start(queue, WaitTimeSeconds=20)

    aws.hide(queue, handle, 0)

    assert waiting.result(SOON_S) == ["hello"]


def test_a_waiting_receive_gets_the_next_of_a_group_when_its_last_one_is_deleted(
    aws: Aws, line: str, start: Start
) -> None:
    aws.send_all(line, "first", "second", group="g")
    handle = aws.handle(line)
    waiting = start(line, WaitTimeSeconds=20)

    aws.delete(line, handle)

    assert waiting.result(SOON_S) == ["second"]


def test_a_client_that_disconnected_gets_no_messages(
    aws: Aws, api: Api, server: LiveServer, queue: str
) -> None:
    before = waiting_claims(api)
    body = f'{{"QueueUrl": "{queue}", "WaitTimeSeconds": 20}}'.encode()
    with Raw(server.port) as gone:
        headers = {"X-Amz-Target": "AmazonSQS.ReceiveMessage"}
        gone.send(request("POST", "/", body, headers=headers))
        eventually(lambda: waiting_claims(api) == before + 1)
    eventually(lambda: waiting_claims(api) == before)

    aws.send(queue)

    assert aws.bodies(queue) == ["hello"]


def test_a_wait_without_a_message_ends_and_no_later_than_the_node_allows(
    make_server: MakeServer,
) -> None:
    alone = Aws(make_server(limits={"max_wait_ms": 20}).url)
    queue = alone.make()

    started = monotonic()

    assert alone.receive(queue, WaitTimeSeconds=20) == []
    assert 0.02 <= monotonic() - started < SOON_S


def test_a_delay_and_a_visibility_timeout_end_during_a_waiting_receive(
    make_server: MakeServer,
) -> None:
    alone = Aws(make_server(wakeups={"poll_ms": 60_000}).url)
    delayed, hidden = alone.make(), alone.make()
    alone.send(delayed, DelaySeconds=1)
    alone.send(hidden)
    alone.handle(hidden, VisibilityTimeout=1)

    assert alone.bodies(delayed, WaitTimeSeconds=20) == ["hello"]
    assert alone.bodies(hidden, WaitTimeSeconds=20) == ["hello"]


# --- messages that cannot be rendered ---


@pytest.fixture
def _poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause an internal error for one body."""
    digest = body_rules.md5_of_body

    def of_body(utf8: bytes) -> str:
        if utf8 == b"poison":
            raise ZeroDivisionError
        return digest(utf8)

    monkeypatch.setattr(body_rules, "md5_of_body", of_body)


@pytest.mark.usefixtures("_poison")
def test_a_message_that_cannot_be_shown_costs_its_neighbours_nothing(
    aws: Aws, api: Api, queue: str
) -> None:
    api.send(name_of(queue), "poison")
    aws.send_all(queue, "a", "b")

    assert aws.bodies(queue) == ["a", "b"]
    assert aws.counts(queue) == (0, 3, 0)


@pytest.mark.usefixtures("_poison")
def test_a_message_that_cannot_be_shown_is_not_overtaken_in_its_group(
    aws: Aws, api: Api, line: str
) -> None:
    for group, body in (("g", "a"), ("g", "poison"), ("g", "c"), ("h", "d"), ("g", "e")):
        api.send(name_of(line), body, group=group)

    assert sorted(aws.bodies(line)) == ["a", "d"]
    # The messages after it are released in the background.
    eventually(lambda: aws.counts(line) == (2, 3, 0))
