"""SQS clients on the servers that all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.edge.api import Api
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import Aws
from tests.edge.sqs.query import Query


@pytest.fixture(scope="session")
def aws(server: LiveServer) -> Iterator[Aws]:
    client = Aws(server.url)
    yield client
    client.close()


@pytest.fixture
def queue(aws: Aws) -> str:
    return aws.make()


@pytest.fixture
def line(aws: Aws) -> str:
    """A FIFO queue."""
    return aws.make_fifo()


@pytest.fixture
def http(api: Api) -> httpx.Client:
    """The same server without any SDK in between."""
    return api.http


@pytest.fixture
def query(http: httpx.Client) -> Query:
    return Query(http)
