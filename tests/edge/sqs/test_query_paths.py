"""The Query protocol: errors, paths and methods."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.edge.sqs.aws import Aws, arn_of, name_of
from tests.edge.sqs.query import FORM, ID, Query, framed, refusal

# --- errors ---


def test_refusals_have_the_words_of_the_older_protocol(query: Query, queue: str) -> None:
    assert refusal(query.ask("SendMessage", QueueUrl="http://x/000000000000/no-such")) == (
        400,
        "AWS.SimpleQueueService.NonExistentQueue",
        "The specified queue does not exist for this wsdl version.",
    )
    assert refusal(query.ask("FooBar")) == (
        400,
        "InvalidAction",
        "The action FooBar is not valid for this endpoint.",
    )
    assert refusal(query.ask("SendMessage", QueueUrl=queue)) == (
        400,
        "MissingParameter",
        "The request must contain the parameter MessageBody.",
    )
    status, code, _ = refusal(query.ask("ReceiveMessage", QueueUrl=queue, WaitTimeSeconds="x"))
    assert (status, code) == (400, "InvalidParameterValue")
    status, code, _ = refusal(query.ask("ListMessageMoveTasks", SourceArn=f"{arn_of(queue)}x"))
    assert (status, code) == (404, "ResourceNotFoundException")


# --- paths and methods ---


def test_a_queue_path_names_the_queue(query: Query, aws: Aws, queue: str) -> None:
    path = f"/000000000000/{name_of(queue)}"

    query.result("SendMessage", path, MessageBody="by path")

    assert "<Body>by path</Body>" in query.result("ReceiveMessage", path)
    query.nothing("PurgeQueue", path)


def test_a_queue_url_comes_before_the_path(query: Query, aws: Aws, queue: str) -> None:
    other = aws.make()

    query.result(
        "SendMessage", f"/000000000000/{name_of(other)}", QueueUrl=queue, MessageBody="by url"
    )

    assert aws.bodies(queue) == ["by url"]


def test_some_actions_are_not_for_queue_paths(query: Query, aws: Aws, queue: str) -> None:
    path = f"/000000000000/{name_of(queue)}"
    other = aws.make()

    for action in ("CreateQueue", "ListQueues"):
        assert refusal(query.ask(action, path, QueueName="x")) == (
            400,
            "InvalidAction",
            f"The action {action} is not valid for this endpoint.",
        )
    found = query.result("GetQueueUrl", path, QueueName=name_of(other))
    assert found == f"<QueueUrl>{other}</QueueUrl>"


def test_get_will_do(http: httpx.Client, aws: Aws, queue: str) -> None:
    path = f"/000000000000/{name_of(queue)}"
    answer = http.get(path, params={"Action": "SendMessage", "MessageBody": "a+b c"})
    framed("SendMessage", answer)

    answer = http.get("/", params={"Action": "ReceiveMessage", "QueueUrl": queue})

    assert "<Body>a+b c</Body>" in framed("ReceiveMessage", answer)
    answer = http.post("/", params={"Action": "GetQueueUrl", "QueueName": name_of(queue)})
    assert framed("GetQueueUrl", answer) == f"<QueueUrl>{queue}</QueueUrl>"


def test_a_client_that_accepts_json_gets_the_same_tree_in_json(
    http: httpx.Client, queue: str
) -> None:
    headers = {"Accept": "application/json"}
    params = {"Action": "ListQueues", "QueueNamePrefix": name_of(queue)}

    answer = http.get("/", params=params, headers=headers)

    assert answer.headers["content-type"] == "application/json"
    shown = answer.json()["ListQueuesResponse"]
    assert shown["ListQueuesResult"]["queueUrls"] == [queue]
    assert re.fullmatch(ID, shown["ResponseMetadata"]["RequestId"])
    wrong = http.get("/", params={"Action": "FooBar"}, headers=headers)
    assert wrong.status_code == 400
    assert wrong.json()["Error"]["Code"] == "InvalidAction"


@pytest.mark.parametrize("path", ["/", "/000000000000/some-queue"])
def test_a_request_of_neither_protocol_is_an_unknown_operation(
    http: httpx.Client, path: str
) -> None:
    for headers in ({}, {"Accept": "application/json"}):
        answer = http.post(path, headers=headers)

        assert answer.status_code == 404
        assert answer.text == "<UnknownOperationException/>"
    if path != "/":
        assert http.get(path).status_code == 404


def test_a_form_that_cannot_be_read_is_refused_in_xml(http: httpx.Client) -> None:
    answer = http.post("/", content=b"Action=%FF%FE", headers=FORM)

    assert refusal(answer)[0] == 400
