"""AWS JSON 1.0 on the wire: headers, empty answers, and errors."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from tests.edge.conftest import MakeServer
from tests.edge.sqs.aws import Aws, name_of, refused

MEDIA = "application/x-amz-json-1.0"
ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def ask(
    http: httpx.Client, operation: str, path: str = "/", /, *, raw: bytes | None = None, **body: Any
) -> httpx.Response:
    content = json.dumps(body).encode() if raw is None else raw
    headers = {"Content-Type": MEDIA, "X-Amz-Target": f"AmazonSQS.{operation}"}
    return http.post(path, content=content, headers=headers)


def assert_refused(answer: httpx.Response, kind: str, code: str, status: int = 400) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA
    assert answer.headers["x-amzn-query-error"] == f"{code};Sender"
    assert re.fullmatch(ID, answer.headers["x-amzn-requestid"])
    assert answer.json().keys() == {"__type", "message"}
    assert answer.json()["__type"] == kind
    return str(answer.json()["message"])


def test_an_answer_has_its_media_type_and_an_id_of_its_own(http: httpx.Client, queue: str) -> None:
    first, second = (ask(http, "SendMessage", QueueUrl=queue, MessageBody="x") for _ in range(2))

    assert first.status_code == 200
    assert first.headers["content-type"] == MEDIA
    assert re.fullmatch(ID, first.headers["x-amzn-requestid"])
    assert first.headers["x-amzn-requestid"] != second.headers["x-amzn-requestid"]
    assert list(first.json()) == ["MD5OfMessageBody", "MessageId"]


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("SetQueueAttributes", {"Attributes": {"DelaySeconds": "0"}}),
        ("TagQueue", {"Tags": {"a": "b"}}),
        ("UntagQueue", {"TagKeys": ["a"]}),
        (
            "AddPermission",
            {"Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]},
        ),
        ("PurgeQueue", {}),
        ("DeleteQueue", {}),
    ],
)
def test_operations_that_give_nothing_answer_without_a_body(
    http: httpx.Client, queue: str, operation: str, body: dict
) -> None:
    answer = ask(http, operation, QueueUrl=queue, **body)

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "0"
    assert answer.headers["content-type"] == MEDIA


def test_absent_results_are_left_out(http: httpx.Client, queue: str) -> None:
    for operation in ("ReceiveMessage", "GetQueueAttributes", "ListQueueTags"):
        assert ask(http, operation, QueueUrl=queue).json() == {}
    assert ask(http, "ListQueues", QueueNamePrefix="no-such").json() == {}


def test_a_queue_path_will_do_as_well(http: httpx.Client, queue: str) -> None:
    path = f"/000000000000/{name_of(queue)}"

    answer = ask(http, "SendMessage", path, QueueUrl=queue, MessageBody="x")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == MEDIA
    assert ask(http, "ListQueues", path).status_code == 200


def test_members_that_are_null_or_unknown_count_for_nothing(
    http: httpx.Client, aws: Aws, queue: str
) -> None:
    answer = ask(
        http,
        "SendMessage",
        QueueUrl=queue,
        MessageBody="x",
        DelaySeconds=None,
        MessageAttributes=None,
        MessageGroupId=None,
        Unknown={"a": [1]},
    )

    assert answer.status_code == 200
    assert ask(http, "ListQueues", raw=b"").status_code == 200
    assert aws.bodies(queue) == ["x"]


def test_a_refusal_has_both_names_of_the_error(http: httpx.Client, queue: str) -> None:
    text = assert_refused(
        ask(http, "SendMessage", QueueUrl="http://x/000000000000/no-such"),
        "com.amazonaws.sqs#QueueDoesNotExist",
        "AWS.SimpleQueueService.NonExistentQueue",
    )
    assert text == "The specified queue does not exist."
    assert_refused(
        ask(http, "ReceiveMessage", QueueUrl=queue, WaitTimeSeconds=21),
        "com.amazon.coral.service#InvalidParameterValueException",
        "InvalidParameterValue",
    )
    assert_refused(
        ask(http, "SendMessage", QueueUrl=queue),
        "com.amazon.coral.service#MissingRequiredParameterException",
        "MissingParameter",
    )
    assert_refused(
        ask(http, "FooBar"), "com.amazon.coral.service#UnknownOperationException", "InvalidAction"
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense",
        b"[]",
        b'{"QueueUrl": 1}',
        b'{"QueueUrl": "q", "MessageBody": 1}',
        b'{"QueueUrl": "q", "DelaySeconds": "1"}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_not_the_json_of_the_operation_is_rejected(
    http: httpx.Client, aws: Aws, raw: bytes
) -> None:
    aws.make_named("q")

    answer = ask(http, "SendMessage", raw=raw)

    assert_refused(
        answer,
        "com.amazon.coral.service#SerializationException",
        "SerializationException",
    )


def test_a_request_too_large_for_the_server_gets_an_sqs_error(make_server: MakeServer) -> None:
    server = make_server(limits={"max_body_bytes": 1000, "max_batch_bytes": 1000})
    alone = Aws(server.url)
    queue = alone.make()

    with refused(
        "InvalidParameterValue",
        "One or more parameters are invalid. Reason: Message must be shorter than 1000 bytes.",
    ):
        alone.send(queue, "x" * 1001)
    with refused(
        "InvalidParameterValue",
        "One or more parameters are invalid. Reason: a request may have at most 66536 bytes",
    ):
        alone.send(queue, "x" * 100_000)


def test_an_internal_error_is_reported_as_internal_failure(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server()
    alone = Aws(server.url)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr(server.broker.queues, "page", fail)

    with refused("InternalFailure", status=500) as refusal:
        alone.client.list_queues()
    assert "secret" not in refusal.text
    with httpx.Client(base_url=server.url, trust_env=False) as http:
        xml = http.get("/", params={"Action": "ListQueues"})
    assert xml.status_code == 500
    assert "<Type>Receiver</Type><Code>InternalFailure</Code>" in xml.text


def test_a_server_without_sqs_does_not_speak_it(make_server: MakeServer) -> None:
    server = make_server(sqs={"enabled": False})

    with httpx.Client(base_url=server.url, trust_env=False) as http:
        assert ask(http, "ListQueues").status_code in (404, 405)
        assert http.get("/").is_redirect
