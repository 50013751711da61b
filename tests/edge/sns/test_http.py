"""Subscriptions over HTTP: the handshake, signed deliveries, retries, and how they end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.sns.sns import Sns, queue_arn, refused
from tests.edge.sns.validator import is_valid
from tests.edge.sqs.aws import Aws
from tests.support.http_backend import HttpBackend
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def pushing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that pushes."""
    with LiveServer(some_settings(tmp_path_factory.mktemp("pushing"))) as started:
        yield started


@pytest.fixture
def pusher(pushing: LiveServer) -> Iterator[Sns]:
    aws = Aws(pushing.url)
    yield Sns(pushing.url, aws)
    aws.close()


@pytest.fixture
def receiver() -> Iterator[HttpBackend]:
    with HttpBackend() as started:
        yield started


def subscribe(sns: Sns, topic: str, receiver: HttpBackend, **attributes: str) -> str:
    """Subscribe a receiver, which confirms; returns the ARN."""
    seen = len(receiver.seen)
    url = f"{receiver.url}/hook"
    answer = sns.client.subscribe(
        TopicArn=topic, Protocol="http", Endpoint=url, Attributes=attributes
    )
    assert answer["SubscriptionArn"] == "pending confirmation"
    asked = json.loads(receiver.wait_for(seen + 1)[seen].payload)
    confirmed = sns.client.confirm_subscription(TopicArn=topic, Token=asked["Token"])
    return str(confirmed["SubscriptionArn"])


def test_an_endpoint_is_asked_to_confirm_and_gets_signed_envelopes(
    pusher: Sns, receiver: HttpBackend
) -> None:
    topic = pusher.topic()
    pusher.client.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"{receiver.url}/hook")
    [asked] = receiver.wait_for(1)
    confirmation = json.loads(asked.payload)
    assert asked.header("x-amz-sns-message-type") == "SubscriptionConfirmation"
    assert confirmation["Type"] == "SubscriptionConfirmation"
    assert is_valid(confirmation)
    pusher.publish(topic, "too early")
    [listed] = pusher.client.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert listed["SubscriptionArn"] == "PendingConfirmation"

    opened = httpx.get(confirmation["SubscribeURL"], trust_env=False)
    assert opened.status_code == 200
    answer = pusher.publish(topic, "hello", Subject="news")

    delivered = receiver.wait_for(2)[1]
    envelope = json.loads(delivered.payload)
    assert (envelope["Message"], envelope["Subject"]) == ("hello", "news")
    assert is_valid(envelope)
    assert delivered.target == "/hook"
    assert delivered.header("x-amz-sns-message-type") == "Notification"
    assert delivered.header("x-amz-sns-message-id") == answer["MessageId"]
    assert delivered.header("x-amz-sns-topic-arn") == topic
    assert delivered.header("content-type") == "text/plain; charset=UTF-8"

    assert httpx.get(envelope["UnsubscribeURL"], trust_env=False).status_code == 200
    assert not pusher.client.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]


def test_raw_delivery_posts_the_message(pusher: Sns, receiver: HttpBackend) -> None:
    topic = pusher.topic()
    subscribe(pusher, topic, receiver, RawMessageDelivery="true")

    pusher.publish(topic, "bare")

    assert receiver.wait_for(2)[1].payload == b"bare"


def test_what_fails_too_often_goes_to_the_dead_letter_queue(
    pusher: Sns, receiver: HttpBackend
) -> None:
    topic, dead = pusher.topic(), pusher.aws.make()
    policy = {"minDelayTarget": 1, "maxDelayTarget": 1, "numRetries": 1}
    subscribe(
        pusher,
        topic,
        receiver,
        RawMessageDelivery="true",
        DeliveryPolicy=json.dumps({"healthyRetryPolicy": policy}),
        RedrivePolicy=json.dumps({"deadLetterTargetArn": queue_arn(dead)}),
    )
    receiver.answer(500)

    pusher.publish(topic, "unwanted")

    receiver.wait_for(3)
    [message] = eventually(lambda: pusher.aws.receive(dead))
    assert "unwanted" in message["Body"] or "dW53YW50ZWQ=" in message["Body"]


def test_an_endpoint_that_must_not_be_reached_is_rejected(pusher: Sns) -> None:
    topic = pusher.topic()

    with refused("InvalidParameter", "169.254.169.254"):
        pusher.client.subscribe(TopicArn=topic, Protocol="http", Endpoint="http://169.254.169.254/")
    with refused("InvalidParameter", "FIFO"):
        pusher.client.subscribe(
            TopicArn=pusher.fifo_topic(), Protocol="https", Endpoint="https://example.org/"
        )
    with refused("InvalidParameter", "Token"):
        pusher.client.confirm_subscription(TopicArn=topic, Token="guessed")


def test_the_urls_of_envelopes_open_nothing_else(tmp_path: Any) -> None:
    settings = some_settings(tmp_path, auth={"required": "always"})
    with LiveServer(settings, has_duties=False) as server:
        query = (
            "Action=Unsubscribe&Action=DeleteTopic&TopicArn=arn:aws:sns:us-east-1:000000000000:a"
        )

        answer = httpx.get(f"{server.url}/?{query}", trust_env=False)

    assert (answer.status_code, "MissingAuthenticationToken" in answer.text) == (403, True)


def test_a_password_in_a_url_is_not_shown(pusher: Sns) -> None:
    topic = pusher.topic()
    given = "http://user:s3cret@one.example.org/hook"

    def subscribe_it() -> str:
        answer = pusher.client.subscribe(
            TopicArn=topic, Protocol="http", Endpoint=given, ReturnSubscriptionArn=True
        )
        return str(answer["SubscriptionArn"])

    arn = subscribe_it()

    assert subscribe_it() == arn
    [listed] = pusher.client.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    shown = pusher.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert listed["Endpoint"] == shown["Endpoint"] == "http://user:****@one.example.org/hook"


def test_changed_policies_apply_to_the_deliveries(pusher: Sns, receiver: HttpBackend) -> None:
    topic, dead = pusher.topic(), pusher.aws.make()
    arn = subscribe(pusher, topic, receiver, RawMessageDelivery="true")
    policy = {"minDelayTarget": 1, "maxDelayTarget": 1, "numRetries": 1}
    for name, value in (
        ("DeliveryPolicy", {"healthyRetryPolicy": policy}),
        ("RedrivePolicy", {"deadLetterTargetArn": queue_arn(dead)}),
    ):
        pusher.client.set_subscription_attributes(
            SubscriptionArn=arn, AttributeName=name, AttributeValue=json.dumps(value)
        )
    receiver.answer(500)

    pusher.publish(topic, "unwanted")

    receiver.wait_for(3)
    assert eventually(lambda: pusher.aws.receive(dead))
