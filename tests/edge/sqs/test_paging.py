"""Paged lists."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from penstock.domain.access.api_key import ANYONE
from penstock.domain.queue.queue import QueueSettings
from penstock.edge.sqs.rules import pages
from penstock.services.queues import QueueView
from tests.edge.api import a_name
from tests.edge.conftest import MakeServer
from tests.edge.sqs.aws import Aws, arn_of, refused


def test_a_page_has_a_token_while_there_is_more(aws: Aws) -> None:
    start = a_name("paged") + "-"
    queues = [aws.make_named(f"{start}{n}") for n in range(5)]

    first = aws.client.list_queues(QueueNamePrefix=start, MaxResults=2)
    second = aws.client.list_queues(
        QueueNamePrefix=start, MaxResults=2, NextToken=first["NextToken"]
    )
    last = aws.client.list_queues(
        QueueNamePrefix=start, MaxResults=2, NextToken=second["NextToken"]
    )

    assert first["QueueUrls"] + second["QueueUrls"] + last["QueueUrls"] == queues
    assert len(second["QueueUrls"]) == 2
    assert "NextToken" not in last
    exactly = aws.client.list_queues(QueueNamePrefix=start, MaxResults=5)
    assert exactly["QueueUrls"] == queues
    assert "NextToken" not in exactly


def test_boto3_turns_the_pages(aws: Aws) -> None:
    start = a_name("turned") + "-"
    queues = [aws.make_named(f"{start}{n}") for n in range(5)]

    pages = aws.client.get_paginator("list_queues").paginate(
        QueueNamePrefix=start, PaginationConfig={"PageSize": 2}
    )

    assert [url for page in pages for url in page.get("QueueUrls", [])] == queues


def test_sources_of_dead_letters_come_in_pages_too(aws: Aws, queue: str) -> None:
    policy = json.dumps({"deadLetterTargetArn": arn_of(queue), "maxReceiveCount": 1})
    sources = [aws.make(RedrivePolicy=policy) for _ in range(3)]

    first = aws.client.list_dead_letter_source_queues(QueueUrl=queue, MaxResults=2)
    last = aws.client.list_dead_letter_source_queues(
        QueueUrl=queue, MaxResults=2, NextToken=first["NextToken"]
    )

    assert sorted(first["queueUrls"] + last["queueUrls"]) == sorted(sources)
    assert len(first["queueUrls"]) == 2
    assert "NextToken" not in last


@pytest.mark.parametrize("wrong", [0, 1001])
def test_pages_have_their_size(aws: Aws, queue: str, wrong: int) -> None:
    with refused("InvalidParameterValue"):
        aws.client.list_queues(MaxResults=wrong)
    with refused("InvalidParameterValue"):
        aws.client.list_dead_letter_source_queues(QueueUrl=queue, MaxResults=wrong)


@pytest.mark.parametrize("wrong", ["nonsense!", "AAAA", "ä", "_w=="])
def test_an_invalid_token_is_rejected(aws: Aws, queue: str, wrong: str) -> None:
    with refused("InvalidParameterValue", "Invalid or expired next token."):
        aws.client.list_queues(MaxResults=1, NextToken=wrong)
    with refused("InvalidParameterValue", "Invalid or expired next token."):
        aws.client.list_dead_letter_source_queues(QueueUrl=queue, MaxResults=1, NextToken=wrong)


def test_a_prefix_that_no_name_has_does_not_spare_the_checks(aws: Aws) -> None:
    with refused("InvalidParameterValue"):
        aws.client.list_queues(QueueNamePrefix="no such", MaxResults=0)
    with refused("InvalidParameterValue", "Invalid or expired next token."):
        aws.client.list_queues(QueueNamePrefix="no such", MaxResults=1, NextToken="nonsense!")
    assert "QueueUrls" not in aws.client.list_queues(QueueNamePrefix="no such", MaxResults=1)


@pytest.mark.parametrize(("size", "limit"), [(1, 2), (3, 4), (1000, 1001), (None, 1001)])
def test_no_more_is_read_than_a_page_needs(size: int | None, limit: int) -> None:
    asked = []

    async def a_look(after: str, limit: int) -> list[QueueView]:
        asked.append(limit)
        return []

    look: Any = a_look  # can be awaited like a ticket
    asyncio.run(pages.page(look, ANYONE, size=size, token=None))

    assert asked == [limit]


def test_without_pages_a_thousand_queues_are_listed(make_server: MakeServer) -> None:
    server = make_server()
    made = [server.broker.queues.put(f"q{n:04}", QueueSettings()) for n in range(1005)]
    for ticket in made:
        ticket.result()
    alone = Aws(server.url)

    answer = alone.client.list_queues()
    pages = list(alone.client.get_paginator("list_queues").paginate(MaxResults=1000))

    assert len(answer["QueueUrls"]) == 1000
    assert "NextToken" not in answer
    assert [len(page["QueueUrls"]) for page in pages] == [1000, 5]
