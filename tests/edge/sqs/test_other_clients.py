"""aiobotocore, boto3's resources, and the AWS command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiobotocore.session import get_session

from penstock.edge.cli.main import main
from tests.edge.api import a_name
from tests.edge.conftest import MakeServer, some_settings
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import REGION, Aws, name_of

AwsCli = Callable[..., Any]
OPTIONS = {
    "region_name": REGION,
    "aws_access_key_id": "anybody",
    "aws_secret_access_key": "anything",
}


def test_aiobotocore_goes_the_whole_way(server: LiveServer) -> None:
    async def go() -> tuple[list[str], dict]:
        options: Any = {"endpoint_url": server.url, **OPTIONS}
        async with get_session().create_client("sqs", **options) as sqs:
            queue = (await sqs.create_queue(QueueName=a_name()))["QueueUrl"]
            await asyncio.gather(
                *(sqs.send_message(QueueUrl=queue, MessageBody=str(n)) for n in range(5))
            )
            got = await sqs.receive_message(
                QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1
            )
            await sqs.delete_message_batch(
                QueueUrl=queue,
                Entries=[
                    {"Id": m["MessageId"], "ReceiptHandle": m["ReceiptHandle"]}
                    for m in got["Messages"]
                ],
            )
            left = await sqs.receive_message(QueueUrl=queue)
            return [m["Body"] for m in got["Messages"]], left

    bodies, left = asyncio.run(go())

    assert sorted(bodies) == list("01234")
    assert "Messages" not in left


def test_boto3_has_queues_and_messages_as_objects(server: LiveServer) -> None:
    options: Any = {"endpoint_url": server.url, **OPTIONS}
    sqs = boto3.resource("sqs", **options)
    queue = sqs.create_queue(QueueName=a_name(), Attributes={"VisibilityTimeout": "5"})
    queue.send_message(MessageBody="first")
    queue.send_messages(Entries=[{"Id": "a", "MessageBody": "second"}])

    queue.load()
    assert queue.attributes["VisibilityTimeout"] == "5"
    assert queue.attributes["ApproximateNumberOfMessages"] == "2"
    messages = queue.receive_messages(MaxNumberOfMessages=10, AttributeNames=["All"])
    answer = queue.delete_messages(
        Entries=[{"Id": m.message_id, "ReceiptHandle": m.receipt_handle} for m in messages]
    )

    assert [m.body for m in messages] == ["first", "second"]
    assert len(answer["Successful"]) == 2
    found = sqs.get_queue_by_name(QueueName=name_of(queue.url))
    assert found.url == queue.url
    assert [q.url for q in sqs.queues.filter(QueueNamePrefix=name_of(queue.url))] == [queue.url]
    queue.delete()


# --- the AWS command line: a process per call, so only the full cycle runs on both stores ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aws")


@pytest.fixture
def run_aws(folder: Path) -> AwsCli:
    def run(
        url: str, *words: object, env: dict[str, str] | None = None, fails: bool = False
    ) -> Any:
        command = [sys.executable, "-m", "awscli", "--endpoint-url", url, "--output", "json", "sqs"]
        ran = subprocess.run(
            [*command, *map(str, words)],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "AWS_DEFAULT_REGION": REGION,
                "AWS_ACCESS_KEY_ID": "anybody",
                "AWS_SECRET_ACCESS_KEY": "anything",
                **(env or {}),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert (ran.returncode != 0) is fails, ran.stderr
        if fails:
            return ran.stderr
        return json.loads(ran.stdout) if ran.stdout else None

    return run


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with LiveServer(some_settings(tmp_path_factory.mktemp("one"))) as started:
        yield started


def test_the_aws_command_line_goes_the_whole_way(
    run_aws: AwsCli, server: LiveServer, folder: Path
) -> None:
    url, name = server.url, a_name("cli")
    made = run_aws(
        url, "create-queue", "--queue-name", name, "--attributes", "VisibilityTimeout=40"
    )
    queue = made["QueueUrl"]
    attributes = folder / "attributes.json"
    attributes.write_text('{"k": {"DataType": "Number", "StringValue": "1"}}')
    batch = folder / "batch.json"
    batch.write_text(json.dumps([{"Id": str(n), "MessageBody": f"batch {n}"} for n in range(3)]))

    sent = run_aws(
        url,
        *("send-message", "--queue-url", queue, "--message-body", "hello"),
        *("--message-attributes", f"file://{attributes}"),
    )
    several = run_aws(
        url, "send-message-batch", "--queue-url", queue, "--entries", f"file://{batch}"
    )
    got = run_aws(
        url,
        *("receive-message", "--queue-url", queue, "--max-number-of-messages", 10),
        *("--attribute-names", "All", "--message-attribute-names", "All"),
    )["Messages"]
    run_aws(
        url, "delete-message", "--queue-url", queue, "--receipt-handle", got[0]["ReceiptHandle"]
    )
    shown = run_aws(url, "get-queue-attributes", "--queue-url", queue, "--attribute-names", "All")

    assert len(several["Successful"]) == 3
    assert [m["Body"] for m in got] == ["hello", "batch 0", "batch 1", "batch 2"]
    assert got[0]["MessageId"] == sent["MessageId"]
    assert got[0]["MessageAttributes"] == {"k": {"DataType": "Number", "StringValue": "1"}}
    assert shown["Attributes"]["VisibilityTimeout"] == "40"
    assert shown["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "3"
    wrong = run_aws(url, "receive-message", "--queue-url", f"{queue}x", fails=True)
    assert "(AWS.SimpleQueueService.NonExistentQueue)" in wrong


def test_the_aws_command_line_turns_pages(run_aws: AwsCli, one_server: LiveServer) -> None:
    client = Aws(one_server.url)
    queues = [client.make_named(f"paged-{n}") for n in range(5)]

    listed = run_aws(
        one_server.url, "list-queues", "--queue-name-prefix", "paged-", "--page-size", 2
    )

    assert listed["QueueUrls"] == queues


def test_the_aws_command_line_signs_with_what_our_command_prints(
    run_aws: AwsCli, make_server: MakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server = make_server(auth={"required": "always"})
    roles = [f"--role={role}" for role in ("produce", "consume", "operate", "read")]

    def ours(*words: str) -> str:
        assert main([*words, "--data", str(server.data)]) == 0
        return capsys.readouterr().out

    created = json.loads(ours("keys", "create", "--name=aws", *roles, "--json"))
    lines = ours("keys", "aws", created["id"]).splitlines()
    server.broker.refresh_keys()
    shown = dict(line.removeprefix("export ").split("=", 1) for line in lines if "AWS_" in line)

    made = run_aws(server.url, "create-queue", "--queue-name", "signed", env=shown)

    assert name_of(made["QueueUrl"]) == "signed"
    refusal = run_aws(server.url, "list-queues", fails=True)
    assert "(InvalidClientTokenId)" in refusal
