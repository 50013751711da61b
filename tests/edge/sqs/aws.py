"""boto3 as short calls, so that a test mentions only what matters to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.edge.api import a_name
from tests.support.waiting import eventually

ACCOUNT = "000000000000"
REGION = "us-east-1"
# Requests must not go through a proxy named in the environment.
_OPTIONS: dict[str, Any] = {"retries": {"total_max_attempts": 1}, "proxies": {}}


class Aws:
    """One client; `client` and `loose` are boto3's own; `loose` validates nothing itself."""

    def __init__(self, url: str, *, key: str = "anybody", secret: str = "anything") -> None:
        self.url = url
        self._options: dict[str, Any] = {
            "endpoint_url": url,
            "region_name": REGION,
            "aws_access_key_id": key,
            "aws_secret_access_key": secret,
        }
        self.client = boto3.client("sqs", **self._options, config=Config(**_OPTIONS))

    @cached_property
    def loose(self) -> Any:
        config = Config(**_OPTIONS, parameter_validation=False)
        return boto3.client("sqs", **self._options, config=config)

    def make(self, start: str = "queue", **attributes: Any) -> str:
        """Create a queue and return its URL."""
        return self.make_named(a_name(start), **attributes)

    def make_fifo(self, **attributes: Any) -> str:
        """Deduplication by content by default, so that sends need only a group."""
        given = {"FifoQueue": "true", "ContentBasedDeduplication": "true", **attributes}
        return self.make_named(f"{a_name('line')}.fifo", **given)

    def make_named(self, name: str, **attributes: Any) -> str:
        given = {name: str(value) for name, value in attributes.items()}
        return str(self.client.create_queue(QueueName=name, Attributes=given)["QueueUrl"])

    def send(self, queue: str, body: str = "hello", **fields: Any) -> dict[str, Any]:
        return self.client.send_message(QueueUrl=queue, MessageBody=body, **fields)

    def send_all(self, queue: str, *bodies: str, group: str | None = None) -> None:
        for body in bodies:
            self.send(queue, body, **({} if group is None else {"MessageGroupId": group}))

    def send_batch(self, queue: str, *entries: dict[str, Any]) -> dict[str, Any]:
        """Entries without an Id are numbered."""
        numbered = [{"Id": str(n), **entry} for n, entry in enumerate(entries)]
        return self.client.send_message_batch(QueueUrl=queue, Entries=numbered)

    def receive(self, queue: str, count: int = 10, **wanted: Any) -> list[dict[str, Any]]:
        answer = self.client.receive_message(QueueUrl=queue, MaxNumberOfMessages=count, **wanted)
        return list(answer.get("Messages", []))

    def receive_one(self, queue: str, **wanted: Any) -> dict[str, Any]:
        """Receive; asks again while a duty of the server has the row locked."""
        return eventually(lambda: self.receive(queue, 1, **wanted))[0]

    def bodies(self, queue: str, count: int = 10, **wanted: Any) -> list[str]:
        return [message["Body"] for message in self.receive(queue, count, **wanted)]

    def handle(self, queue: str, **wanted: Any) -> str:
        """Receive a message; returns its receipt handle."""
        return str(self.receive_one(queue, **wanted)["ReceiptHandle"])

    def delete(self, queue: str, handle: str) -> None:
        self.client.delete_message(QueueUrl=queue, ReceiptHandle=handle)

    def hide(self, queue: str, handle: str, seconds: int) -> None:
        self.client.change_message_visibility(
            QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=seconds
        )

    def attributes(self, queue: str, *names: str) -> dict[str, str]:
        answer = self.client.get_queue_attributes(
            QueueUrl=queue, AttributeNames=list(names or ("All",))
        )
        return dict(answer.get("Attributes", {}))

    def attribute(self, queue: str, name: str) -> str | None:
        return self.attributes(queue, name).get(name)

    def set(self, queue: str, **attributes: Any) -> None:
        given = {name: str(value) for name, value in attributes.items()}
        self.client.set_queue_attributes(QueueUrl=queue, Attributes=given)

    def counts(self, queue: str) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        shown = self.attributes(queue)
        start = "ApproximateNumberOfMessages"
        return int(shown[start]), int(shown[f"{start}NotVisible"]), int(shown[f"{start}Delayed"])

    def close(self) -> None:
        self.client.close()


def name_of(queue: str) -> str:
    """The name of a queue by its URL."""
    return queue.rpartition("/")[2]


def arn_of(queue: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name_of(queue)}"


class Refusal:
    """The error that a client got; filled in when the block has ended."""

    error: ClientError

    @property
    def kind(self) -> str:
        """The exception class that boto3 generated for it."""
        return type(self.error).__name__

    @property
    def text(self) -> str:
        return str(self.error.response["Error"]["Message"])


@contextmanager
def refused(code: str, text: str | None = None, *, status: int = 400) -> Iterator[Refusal]:
    """Expect the block to be rejected with this code, and with this text if given."""
    refusal = Refusal()
    with pytest.raises(ClientError) as raised:
        yield refusal
    refusal.error = raised.value
    response = raised.value.response
    found = (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"])
    assert found == (code, status), refusal.text
    if text is not None:
        assert refusal.text == text
