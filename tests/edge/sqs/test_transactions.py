"""Each request goes to the store as a whole: all or nothing, in one commit."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.store.commit.requests import RequestKind
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import Aws

pytestmark = pytest.mark.both_stores

TEN = [{"MessageBody": f"number {n}"} for n in range(10)]


@pytest.fixture
def asked(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests to the store; each of them is one transaction.

    The server's own duties use `write`, as would an operation in many small steps.
    """
    found: list[str] = []
    store: Any = server.broker.store
    submit = store._submit

    def note(kind: RequestKind, payload: Any) -> Any:
        if kind is not RequestKind.WRITE:
            found.append(kind.name.lower())
        return submit(kind, payload)

    monkeypatch.setattr(store, "_submit", note)
    return found


def receipts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)]


def test_a_batch_is_sent_in_one_transaction(aws: Aws, queue: str, asked: list[str]) -> None:
    for _ in range(2):  # the queue is not cached, then cached
        assert len(aws.send_batch(queue, *TEN)["Successful"]) == 10

    assert asked == ["send", "send"]


def test_ten_messages_are_received_in_one_transaction(
    aws: Aws, queue: str, asked: list[str]
) -> None:
    aws.send_batch(queue, *TEN)
    asked.clear()

    assert len(aws.receive(queue, 10)) == 10

    assert asked == ["claim"]


def test_a_batch_is_deleted_in_one_transaction(aws: Aws, queue: str, asked: list[str]) -> None:
    aws.send_batch(queue, *TEN)
    entries = receipts(aws.receive(queue, 10))
    asked.clear()

    answer = aws.client.delete_message_batch(QueueUrl=queue, Entries=entries)

    assert len(answer["Successful"]) == 10
    assert asked == ["act"]


def test_handles_whose_time_is_over_are_deleted_in_a_second_one(
    aws: Aws, queue: str, asked: list[str]
) -> None:
    aws.send_batch(queue, *TEN)
    entries = receipts(aws.receive(queue, 9, VisibilityTimeout=0))
    assert aws.counts(queue) == (10, 0, 0)  # they are visible again
    entries += receipts(aws.receive(queue, 1, VisibilityTimeout=60))
    entries = [{**entry, "Id": str(n)} for n, entry in enumerate(entries)]
    asked.clear()

    answer = aws.client.delete_message_batch(QueueUrl=queue, Entries=entries)

    assert len(answer["Successful"]) == 10
    assert asked == ["act", "act"]


def test_the_visibility_of_a_batch_is_changed_in_one_transaction(
    aws: Aws, queue: str, asked: list[str]
) -> None:
    aws.send_batch(queue, *TEN)
    entries = [{**entry, "VisibilityTimeout": 9} for entry in receipts(aws.receive(queue, 10))]
    asked.clear()

    aws.client.change_message_visibility_batch(QueueUrl=queue, Entries=entries)

    assert asked == ["act"]
