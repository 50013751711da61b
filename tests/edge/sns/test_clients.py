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
import pytest
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


def client_with_key(
    service: str, server: LiveServer, *roles: Role, queues: tuple[str, ...] = ("*",)
) -> Any:
    """boto3's client with a new key, which has all roles if none is given."""
    keys = server.broker.keys
    made = keys.create("a test", roles=roles or tuple(Role), queues=queues).result()
    server.broker.refresh_keys()
    options = {
        **OPTIONS,
        "aws_access_key_id": made.key.key_id,
        "aws_secret_access_key": keys.signing_secret(made.key),
    }
    return boto3.client(service, endpoint_url=server.url, **options)


def test_a_key_needs_the_role_and_the_topic(make_server: MakeServer) -> None:
    server = make_server(auth={"required": "always"})

    def client(*roles: Role, queues: tuple[str, ...] = ("*",)) -> Any:
        return client_with_key("sns", server, *roles, queues=queues)

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


def test_an_unsigned_request_needs_the_token_of_an_envelope(make_server: MakeServer) -> None:
    server = make_server(auth={"required": "always"})
    sns, sqs = client_with_key("sns", server), client_with_key("sqs", server)
    topic = sns.create_topic(Name="orders")["TopicArn"]
    queue = sqs.create_queue(QueueName="mail")["QueueUrl"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue_arn(queue))
    sns.publish(TopicArn=topic, Message="m")
    [message] = sqs.receive_message(QueueUrl=queue)["Messages"]
    unsubscribe = json.loads(message["Body"])["UnsubscribeURL"]
    without, _, token = unsubscribe.partition("&Token=")

    for url in (without, f"{without}&Token={token[1:]}0"):
        assert httpx.get(url, trust_env=False).status_code == 403
    assert len(sns.list_subscriptions()["Subscriptions"]) == 1

    assert httpx.get(unsubscribe, trust_env=False).status_code == 200
    assert not sns.list_subscriptions()["Subscriptions"]


def test_tokens_of_lists_name_only_topics_of_the_key(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("subscriptions", "topics"):
        monkeypatch.setattr(f"penstock.edge.sns.{module}.PAGE", 1)
    server = make_server(auth={"required": "always"})
    admin = client_with_key("sns", server)
    queue = client_with_key("sqs", server).create_queue(QueueName="mail")["QueueUrl"]
    for name in ("bank", "mail", "mail2", "salaries"):
        topic = admin.create_topic(Name=name)["TopicArn"]
        admin.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue_arn(queue))
    limited = client_with_key("sns", server, queues=("mail*",))

    for operation, part in (
        (limited.list_topics, "Topics"),
        (limited.list_subscriptions, "Subscriptions"),
    ):
        first = operation()
        second = operation(NextToken=first["NextToken"])
        last = operation(NextToken=second["NextToken"])
        found = [one["TopicArn"].rpartition(":")[2] for one in first[part] + second[part]]
        assert found == ["mail", "mail2"]
        assert first["NextToken"].startswith("mail")
        assert second["NextToken"].startswith("mail2")
        assert (last[part], "NextToken" in last) == ([], False)


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
