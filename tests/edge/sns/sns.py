"""boto3's SNS client as short calls, so that a test mentions only what matters to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.edge.api import a_name
from tests.edge.sqs.aws import ACCOUNT, REGION, Aws, name_of

OPTIONS: dict[str, Any] = {
    "region_name": REGION,
    "aws_access_key_id": "anybody",
    "aws_secret_access_key": "anything",
}


class Sns:
    def __init__(self, url: str, aws: Aws) -> None:
        self.url = url
        self.aws = aws
        config = Config(retries={"total_max_attempts": 1}, proxies={})
        self.client = boto3.client("sns", endpoint_url=url, **OPTIONS, config=config)

    def topic(self, **attributes: Any) -> str:
        """Create a topic; returns its ARN."""
        given = {name: str(value) for name, value in attributes.items()}
        return str(self.client.create_topic(Name=a_name("topic"), Attributes=given)["TopicArn"])

    def fifo_topic(self, **attributes: Any) -> str:
        given = {"FifoTopic": "true", "ContentBasedDeduplication": "true", **attributes}
        name = f"{a_name('topic')}.fifo"
        return str(self.client.create_topic(Name=name, Attributes=given)["TopicArn"])

    def subscribe(self, topic: str, queue: str, **attributes: Any) -> str:
        """Subscribe a queue, by its URL; returns the ARN of the subscription."""
        answer = self.client.subscribe(
            TopicArn=topic, Protocol="sqs", Endpoint=queue_arn(queue), Attributes=attributes
        )
        return str(answer["SubscriptionArn"])

    def raw(self, topic: str, **attributes: Any) -> str:
        """Subscribe a new queue to bare messages; returns its URL."""
        queue = self.aws.make()
        self.subscribe(topic, queue, RawMessageDelivery="true", **attributes)
        return queue

    def publish(self, topic: str, message: str = "hello", **fields: Any) -> dict[str, Any]:
        return self.client.publish(TopicArn=topic, Message=message, **fields)

    def envelope(self, queue: str) -> dict[str, Any]:
        """The envelope in the next message of a queue."""
        return json.loads(self.aws.receive_one(queue)["Body"])


def queue_arn(url: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name_of(url)}"


def text(value: str, kind: str = "String") -> dict[str, str]:
    return {"DataType": kind, "StringValue": value}


@contextmanager
def refused(code: str, part: str = "") -> Iterator[None]:
    """Expect the block to be rejected with this code, and with a text that has this part."""
    with pytest.raises(ClientError) as raised:
        yield
    error = raised.value.response["Error"]
    assert error["Code"] == code, error
    assert part in error["Message"]
