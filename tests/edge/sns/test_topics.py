"""Topics: their names, attributes, tags and permissions."""

from __future__ import annotations

import json

import pytest

from tests.edge.api import Api, a_name
from tests.edge.sns.sns import Sns, refused
from tests.edge.sqs.aws import ACCOUNT, REGION


def test_a_topic_of_sns_is_a_topic_of_penstock(sns: Sns, api: Api) -> None:
    name = a_name("topic")

    arn = sns.client.create_topic(Name=name)["TopicArn"]

    assert arn == f"arn:aws:sns:{REGION}:{ACCOUNT}:{name}"
    assert api.get(f"/v1/topics/{name}")["name"] == name
    api.call("PUT", f"/v1/topics/{name}-native")
    listed = [
        one["TopicArn"]
        for one in sns.client.get_paginator("list_topics").paginate().search("Topics[]")
    ]
    assert {arn, f"{arn}-native"} <= set(listed)


def test_creating_it_again_returns_it_unless_attributes_differ(sns: Sns) -> None:
    name = a_name("topic")
    first = sns.client.create_topic(Name=name, Attributes={"DisplayName": "a"})

    assert sns.client.create_topic(Name=name)["TopicArn"] == first["TopicArn"]
    assert sns.client.create_topic(Name=name, Attributes={"DisplayName": "a"})
    with refused("InvalidParameter", "different attributes"):
        sns.client.create_topic(Name=name, Attributes={"DisplayName": "b"})
    with refused("InvalidParameter", "different tags"):
        sns.client.create_topic(Name=name, Tags=[{"Key": "a", "Value": "b"}])


@pytest.mark.parametrize(
    ("name", "attributes", "part"),
    [
        ("a b", {}, "Topic Name"),
        ("a.fifo", {}, "Topic Name"),
        ("a", {"FifoTopic": "true"}, "must end with .fifo"),
        ("a", {"Colour": "red"}, "AttributeName"),
        ("a", {"ContentBasedDeduplication": "true"}, "only be set for FIFO"),
        ("a", {"SignatureVersion": "3"}, "must be 1 or 2"),
        ("a", {"DeliveryPolicy": "{"}, "failed to parse"),
        ("x" * 79, {}, "78 characters"),
    ],
)
def test_an_invalid_topic_is_rejected(
    sns: Sns, name: str, attributes: dict[str, str], part: str
) -> None:
    with refused("InvalidParameter", part):
        sns.client.create_topic(Name=name, Attributes=attributes)


def test_attributes_can_be_read_and_changed(sns: Sns, topic: str) -> None:
    sns.client.set_topic_attributes(
        TopicArn=topic, AttributeName="DisplayName", AttributeValue="Orders"
    )

    found = sns.client.get_topic_attributes(TopicArn=topic)["Attributes"]

    assert (found["TopicArn"], found["Owner"], found["DisplayName"]) == (topic, ACCOUNT, "Orders")
    assert (found["SubscriptionsConfirmed"], found["SubscriptionsPending"]) == ("0", "0")
    assert "FifoTopic" not in found
    policy = json.loads(found["EffectiveDeliveryPolicy"])
    assert policy["http"]["defaultHealthyRetryPolicy"]["numRetries"] == 3
    with refused("InvalidParameter", "AttributeName"):
        sns.client.set_topic_attributes(TopicArn=topic, AttributeName="No", AttributeValue="x")


def test_a_fifo_topic_shows_what_it_is(sns: Sns) -> None:
    found = sns.client.get_topic_attributes(TopicArn=sns.fifo_topic())["Attributes"]

    assert found["FifoTopic"] == found["ContentBasedDeduplication"] == "true"
    assert found["FifoThroughputScope"] == "Topic"


def test_a_topic_can_be_deleted_twice(sns: Sns, topic: str, queue: str) -> None:
    sns.subscribe(topic, queue)

    for _ in range(2):
        sns.client.delete_topic(TopicArn=topic)

    with refused("NotFound"):
        sns.client.get_topic_attributes(TopicArn=topic)


def test_tags_are_added_listed_and_removed(sns: Sns, topic: str) -> None:
    sns.client.tag_resource(
        ResourceArn=topic, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    )
    sns.client.untag_resource(ResourceArn=topic, TagKeys=["a"])

    found = sns.client.list_tags_for_resource(ResourceArn=topic)["Tags"]
    assert found == [{"Key": "b", "Value": "2"}]
    with refused("ResourceNotFound"):
        sns.client.list_tags_for_resource(ResourceArn=f"{topic}-not")
    with refused("TagLimitExceeded"):
        sns.client.tag_resource(
            ResourceArn=topic, Tags=[{"Key": str(n), "Value": ""} for n in range(50)]
        )


def test_permissions_are_kept_in_the_policy(sns: Sns, topic: str) -> None:
    sns.client.add_permission(
        TopicArn=topic, Label="shop", AWSAccountId=["111122223333"], ActionName=["Publish"]
    )
    added = json.loads(sns.client.get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"])
    sns.client.remove_permission(TopicArn=topic, Label="shop")
    left = json.loads(sns.client.get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"])

    assert [one["Sid"] for one in added["Statement"]] == ["shop"]
    assert added["Statement"][0]["Action"] == "SNS:Publish"
    assert [one["Sid"] for one in left["Statement"]] == ["__default_statement_ID"]
