"""Subscriptions of queues: their attributes, and how they end."""

from __future__ import annotations

import pytest

from tests.edge.api import Api, assert_refused
from tests.edge.sns.sns import Sns, queue_arn, refused
from tests.edge.sqs.aws import ACCOUNT, Aws, name_of


def test_a_queue_is_subscribed_once(sns: Sns, topic: str, queue: str) -> None:
    first = sns.subscribe(topic, queue)

    assert sns.subscribe(topic, queue) == first
    with refused("InvalidParameter", "different attributes"):
        sns.subscribe(topic, queue, RawMessageDelivery="true")
    [listed] = sns.client.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert listed == {
        "SubscriptionArn": first,
        "Owner": ACCOUNT,
        "Protocol": "sqs",
        "Endpoint": queue_arn(queue),
        "TopicArn": topic,
    }


def test_several_topics_may_feed_one_queue(sns: Sns, aws: Aws, queue: str) -> None:
    topics = [sns.topic() for _ in range(2)]
    for topic in topics:
        sns.subscribe(topic, queue, RawMessageDelivery="true")

    for topic in topics:
        sns.publish(topic, topic)

    assert sorted(aws.bodies(queue)) == sorted(topics)


def test_all_subscriptions_are_listed(sns: Sns, topic: str, queue: str) -> None:
    arn = sns.subscribe(topic, queue)

    pages = sns.client.get_paginator("list_subscriptions").paginate()

    assert arn in [one["SubscriptionArn"] for one in pages.search("Subscriptions[]")]


def test_attributes_can_be_read_and_changed(sns: Sns, topic: str, queue: str) -> None:
    arn = sns.subscribe(topic, queue, FilterPolicy='{"a": ["b"]}')

    sns.client.set_subscription_attributes(
        SubscriptionArn=arn, AttributeName="RawMessageDelivery", AttributeValue="true"
    )

    found = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert found["RawMessageDelivery"] == "true"
    assert found["PendingConfirmation"] == "false"
    assert found["FilterPolicy"] == '{"a": ["b"]}'
    assert found["FilterPolicyScope"] == "MessageAttributes"
    assert found["Endpoint"] == queue_arn(queue)


def test_a_redrive_policy_must_name_a_queue(sns: Sns, aws: Aws, topic: str, queue: str) -> None:
    arn = sns.subscribe(topic, queue)
    dead = f'{{"deadLetterTargetArn": "{queue_arn(aws.make())}"}}'

    def set_policy(text: str) -> None:
        sns.client.set_subscription_attributes(
            SubscriptionArn=arn, AttributeName="RedrivePolicy", AttributeValue=text
        )

    set_policy(dead)
    found = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert found["RedrivePolicy"] == dead
    with refused("InvalidParameter", "does not exist"):
        set_policy(dead.replace("queue", "other"))
    with refused("InvalidParameter", "deadLetterTargetArn"):
        set_policy("{}")


@pytest.mark.parametrize(
    ("attributes", "part"),
    [
        ({"FilterPolicy": "{"}, "FilterPolicy: failed to parse JSON"),
        ({"FilterPolicy": '{"a": "b"}'}, "must be an object or an array"),
        ({"FilterPolicy": '{"a":[1],"b":[1],"c":[1],"d":[1],"e":[1],"f":[1]}'}, "5 keys"),
        ({"FilterPolicy": '{"a": {"b": ["c"]}}'}, "nested"),
        ({"FilterPolicyScope": "Message"}, "FilterPolicyScope"),
        ({"RawMessageDelivery": "maybe"}, "RawMessageDelivery"),
        ({"DeliveryPolicy": '{"healthyRetryPolicy": {"numRetries": 101}}'}, "numRetries"),
        ({"Colour": "red"}, "AttributeName"),
    ],
)
def test_invalid_attributes_are_rejected(
    sns: Sns, topic: str, queue: str, attributes: dict[str, str], part: str
) -> None:
    with refused("InvalidParameter", part):
        sns.subscribe(topic, queue, **attributes)

    assert not sns.client.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]


def test_what_cannot_be_subscribed_is_rejected(sns: Sns, aws: Aws, topic: str) -> None:
    with refused("InvalidParameter", "FIFO SQS Queues"):
        sns.subscribe(topic, aws.make_fifo())
    with refused("InvalidParameter", "does not exist"):
        sns.subscribe(topic, "http://h/1/nothing-here")
    with refused("InvalidParameter", "SQS endpoint ARN"):
        sns.client.subscribe(TopicArn=topic, Protocol="sqs", Endpoint="mail")
    with refused("InvalidParameter", "not available"):
        sns.client.subscribe(TopicArn=topic, Protocol="email", Endpoint="a@example.org")
    with refused("NotFound"):
        sns.subscribe(f"{topic}-not", aws.make())


def test_an_ended_subscription_gets_nothing(sns: Sns, topic: str, queue: str) -> None:
    arn = sns.subscribe(topic, queue, RawMessageDelivery="true")
    sns.publish(topic, "a")

    for _ in range(2):
        sns.client.unsubscribe(SubscriptionArn=arn)
    sns.publish(topic, "b")

    assert sns.aws.bodies(queue) == ["a"]
    with refused("NotFound", "Subscription does not exist"):
        sns.client.get_subscription_attributes(SubscriptionArn=arn)


def test_a_deleted_queue_does_not_affect_the_others(sns: Sns, aws: Aws, topic: str) -> None:
    stays, goes = sns.raw(topic), sns.raw(topic)
    sns.publish(topic, "a")

    aws.client.delete_queue(QueueUrl=goes)
    sns.publish(topic, "b")

    assert aws.bodies(stays) == ["a", "b"]


def test_both_apis_publish_to_the_same_subscriptions(sns: Sns, topic: str, api: Api) -> None:
    name = topic.rpartition(":")[2]
    queue = sns.raw(topic)
    api.call("PUT", f"/v1/topics/{name}/subscriptions/native", {"filter": {"a": ["b"]}})

    api.call("POST", f"/v1/topics/{name}/events", {"body": "native"})
    sns.publish(topic, "aws", MessageAttributes={"a": {"DataType": "String", "StringValue": "b"}})

    assert sns.aws.bodies(queue) == ["native", "aws"]
    [message] = sns.aws.receive(
        sns.aws.client.get_queue_url(QueueName=f"{name}.native")["QueueUrl"]
    )
    assert message["Body"] == "aws"
    assert name_of(queue) in [
        one["queue"] for one in api.get(f"/v1/topics/{name}")["subscriptions"]
    ]


def test_a_subscribed_queue_is_removed_with_no_subscription(
    sns: Sns, aws: Aws, api: Api, topic: str, queue: str
) -> None:
    arn = sns.subscribe(topic, queue)
    aws.send(queue, "not of the topic")
    *_, name, subscription = arn.split(":")
    path = f"/v1/topics/{name}/subscriptions/{subscription}"

    refused = api.call("DELETE", path, params={"with_queue": "true"})

    assert_refused(refused, 400, "invalid_request")
    assert "not the subscription's own" in refused.text
    assert aws.bodies(queue) == ["not of the topic"]
    assert api.call("DELETE", path).status_code == 204
