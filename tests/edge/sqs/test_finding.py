"""Names of queues are read from their URLs, and remembered."""

from __future__ import annotations

import pytest

from penstock.domain.queue.queue import Queue
from penstock.edge.server.request import Request
from penstock.edge.sqs.errors import SqsError
from penstock.edge.sqs.queue_lookup import Finder
from penstock.edge.sqs.wire.call import Asked
from penstock.edge.sqs.wire.model import PurgeQueueRequest
from penstock.settings.values import SqsSettings
from tests.edge.sqs.aws import ACCOUNT


class Seen:
    """A directory that has seen every queue; what it was asked for is kept."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def cached(self, name: str) -> Queue | None:
        self.names.append(name)
        return None


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def finder(seen: Seen) -> Finder:
    return Finder(seen, account=ACCOUNT)  # type: ignore[arg-type]


def asked(url: str) -> Asked:
    request = Request("POST", "/", b"", {}, b"")
    return Asked(PurgeQueueRequest(QueueUrl=url), request, SqsSettings(), "http")


def test_a_url_means_the_same_queue_every_time(seen: Seen, finder: Finder) -> None:
    for name in ("mail", "sms", "mail"):
        finder.known(asked(f"http://h/{ACCOUNT}/{name}"))

    assert seen.names == ["mail", "sms", "mail"]


def test_the_queue_of_another_account_is_refused_every_time(finder: Finder) -> None:
    for _ in range(2):
        with pytest.raises(SqsError, match="does not exist"):
            finder.known(asked("http://h/999999999999/mail"))


def test_a_long_url_is_read_but_not_remembered(seen: Seen, finder: Finder) -> None:
    for host in ("a", "b", "d" * 400):
        finder.known(asked(f"http://{host}/{ACCOUNT}/mail"))

    assert seen.names == ["mail"] * 3
    assert finder._remembered.cache_info().currsize == 2
