"""Queue names are read from URLs, and cached."""

from __future__ import annotations

import pytest

from penstock.domain.queue.queue import Queue
from penstock.edge.aws.errors import AwsError
from penstock.edge.server.request import Request
from penstock.edge.sqs.call import QueueLookup, SqsCall
from penstock.edge.sqs.wire.model import PurgeQueueRequest
from penstock.settings.values import SqsSettings
from tests.edge.sqs.aws import ACCOUNT


class Seen:
    """A directory that records the names it looks up."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def cached(self, name: str) -> Queue | None:
        self.names.append(name)
        return None


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def lookup(seen: Seen) -> QueueLookup:
    return QueueLookup(seen, None, SqsSettings(account=ACCOUNT))  # type: ignore[arg-type]


def call(url: str) -> SqsCall:
    request = Request("POST", "/", b"", {}, b"")
    return SqsCall(PurgeQueueRequest(QueueUrl=url), request, SqsSettings(), "http")


def test_a_url_means_the_same_queue_every_time(seen: Seen, lookup: QueueLookup) -> None:
    for name in ("mail", "sms", "mail"):
        lookup.cached_queue(call(f"http://h/{ACCOUNT}/{name}"))

    assert seen.names == ["mail", "sms", "mail"]


def test_the_queue_of_another_account_is_refused_every_time(lookup: QueueLookup) -> None:
    for _ in range(2):
        with pytest.raises(AwsError, match="does not exist"):
            lookup.cached_queue(call("http://h/999999999999/mail"))


def test_a_long_url_is_read_but_not_remembered(seen: Seen, lookup: QueueLookup) -> None:
    for host in ("a", "b", "d" * 400):
        lookup.cached_queue(call(f"http://{host}/{ACCOUNT}/mail"))

    assert seen.names == ["mail"] * 3
    assert lookup._remembered.cache_info().currsize == 2
