"""Queues that are created when they are first used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.edge.conftest import MakeServer
from tests.edge.sqs.aws import Aws, refused


@pytest.fixture
def aws(make_server: MakeServer) -> Iterator[Aws]:
    client = Aws(make_server(sqs={"auto_create": True}).url)
    yield client
    client.close()


def url_of(aws: Aws, name: str) -> str:
    return f"{aws.url}/000000000000/{name}"


def test_the_first_send_creates_a_queue_with_the_defaults_of_sqs(aws: Aws) -> None:
    queue = url_of(aws, "orders")

    aws.send(queue, "hello")

    assert aws.bodies(queue) == ["hello"]
    shown = aws.attributes(queue)
    assert (shown["VisibilityTimeout"], shown["MessageRetentionPeriod"]) == ("30", "345600")


def test_a_name_of_a_fifo_queue_creates_one(aws: Aws) -> None:
    queue = url_of(aws, "orders.fifo")

    aws.send(queue, "hello", MessageGroupId="g", MessageDeduplicationId="d")

    assert aws.attribute(queue, "FifoQueue") == "true"


def test_its_url_can_be_asked_for(aws: Aws) -> None:
    found = aws.client.get_queue_url(QueueName="orders")["QueueUrl"]

    assert aws.receive(found) == []


def test_an_impossible_name_is_rejected(aws: Aws) -> None:
    with refused("AWS.SimpleQueueService.NonExistentQueue"):
        aws.send(url_of(aws, "no%20name"), "hello")
