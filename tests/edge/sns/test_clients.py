"""Other clients of SNS: aiobotocore, the AWS command line, and signed requests."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import boto3
import httpx
from aiobotocore.session import get_session

from penstock.domain.access.api_key import Role
from tests.edge.api import a_name
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer
from tests.edge.sns.sns import OPTIONS, Sns, queue_arn, refused
from tests.edge.sqs.aws import REGION


def test_aiobotocore_goes_the_whole_way(server: LiveServer, queue: str, sns: Sns) -> None:
    async def go() -> None:
        options: Any = {"endpoint_url": server.url, **OPTIONS}
        async with get_session().create_client("sns", **options) as client:
            topic = (await client.create_topic(Name=a_name()))["TopicArn"]
            await client.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue_arn(queue))
            await asyncio.gather(
                *(client.publish(TopicArn=topic, Message=str(n)) for n in range(3))
            )

    asyncio.run(go())

    bodies = [json.loads(body)["Message"] for body in sns.aws.bodies(queue)]
    assert sorted(bodies) == ["0", "1", "2"]


def test_the_aws_command_line_goes_the_whole_way(
    server: LiveServer, queue: str, sns: Sns, tmp_path: Any
) -> None:
    def run(*words: str) -> Any:
        command = [sys.executable, "-m", "awscli", "--endpoint-url", server.url]
        ran = subprocess.run(
            [*command, "--output", "json", "sns", *words],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "AWS_DEFAULT_REGION": REGION,
                "AWS_ACCESS_KEY_ID": "anybody",
                "AWS_SECRET_ACCESS_KEY": "anything",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    topic = run("create-topic", "--name", a_name())["TopicArn"]
    sns.subscribe(topic, queue, RawMessageDelivery="true")
    run("publish", "--topic-arn", topic, "--message", "from the command line")

    assert sns.aws.bodies(queue) == ["from the command line"]


def test_a_key_needs_the_role_and_the_topic(make_server: MakeServer) -> None:
    server = make_server(auth={"required": "always"})
    broker = server.broker

    def client(*roles: Role, queues: tuple[str, ...] = ("*",)) -> Any:
        made = broker.keys.create("a test", roles=roles, queues=queues).result()
        broker.refresh_keys()
        options = {
            **OPTIONS,
            "aws_access_key_id": made.key.key_id,
            "aws_secret_access_key": broker.keys.signing_secret(made.key),
        }
        return boto3.client("sns", endpoint_url=server.url, **options)

    topic = client(Role.OPERATE).create_topic(Name="orders")["TopicArn"]

    assert client(Role.PRODUCE).publish(TopicArn=topic, Message="m")["MessageId"]
    with refused("AuthorizationError"):
        client(Role.CONSUME).publish(TopicArn=topic, Message="m")
    with refused("AuthorizationError"):
        client(Role.PRODUCE, queues=("other*",)).publish(TopicArn=topic, Message="m")
    assert client(Role.READ, queues=("other*",)).list_topics()["Topics"] == []
    fields = {"Action": "ListTopics", "Version": "2010-03-31"}
    unsigned = httpx.post(server.url, data=fields, trust_env=False)
    assert (unsigned.status_code, "MissingAuthenticationToken" in unsigned.text) == (403, True)


def test_an_unknown_operation_is_an_error(server: LiveServer) -> None:
    fields = {"Action": "CreatePlatformEndpoint", "Version": "2010-03-31"}
    answer = httpx.post(server.url, data=fields, trust_env=False)

    assert answer.status_code == 400
    assert "<Code>InvalidAction</Code>" in answer.text
    assert 'xmlns="http://sns.amazonaws.com/doc/2010-03-31/"' in answer.text


def test_sns_can_be_switched_off(make_server: MakeServer) -> None:
    server = make_server(sqs={"sns": False})
    fields = {"Action": "ListTopics", "Version": "2010-03-31"}

    answer = httpx.post(server.url, data=fields, trust_env=False)

    assert "<Code>InvalidAction</Code>" in answer.text
