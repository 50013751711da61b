"""A marketplace and a legacy system, which know the order service's queues but not its code.

python -m tests.stories.marketplace FIRST COUNT   sends COUNT orders each way, numbered from FIRST

The ways are plain code, an event loop (both over HTTP), and SQS.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import boto3
import msgspec

from penstock import Penstock

SERVER = os.environ["STORY_SERVER"]

market = Penstock(SERVER)


def options(number: int) -> Any:
    return {"queue": "intake", "dedup_key": f"order-{number}", "tags": (f"order-{number}",)}


def send(numbers: range) -> None:
    for number in numbers:
        market.enqueue("accept", {"order": {"number": number}}, **options(number))


async def send_on_loop(numbers: range) -> None:
    async with Penstock(SERVER) as other:
        for number in numbers:
            await other.enqueue_async("accept", {"order": {"number": number}}, **options(number))


def send_by_sqs(numbers: range) -> None:
    sqs = boto3.client(
        "sqs",
        endpoint_url=SERVER,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="thing",
    )
    url = sqs.create_queue(QueueName="legacy-orders")["QueueUrl"]
    for number in numbers:
        sqs.send_message(QueueUrl=url, MessageBody=msgspec.json.encode({"number": number}).decode())


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    with market:
        send(range(first, first + count))
    asyncio.run(send_on_loop(range(first + count, first + 2 * count)))
    send_by_sqs(range(first + 2 * count, first + 3 * count))
