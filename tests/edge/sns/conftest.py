"""Clients of SNS and SQS on the server that all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.edge.live import LiveServer
from tests.edge.sns.sns import Sns
from tests.edge.sqs.aws import Aws


@pytest.fixture(scope="session")
def aws(server: LiveServer) -> Iterator[Aws]:
    client = Aws(server.url)
    yield client
    client.close()


@pytest.fixture(scope="session")
def sns(server: LiveServer, aws: Aws) -> Sns:
    return Sns(server.url, aws)


@pytest.fixture
def topic(sns: Sns) -> str:
    return sns.topic()


@pytest.fixture
def queue(aws: Aws) -> str:
    return aws.make()
