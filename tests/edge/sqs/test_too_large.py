"""Errors of the HTTP server itself are rendered in the protocol of the request."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.edge.live import LiveServer
from tests.edge.raw import Raw, request
from tests.edge.sqs.aws import Aws

JSON = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TOO_LARGE = {"Content-Length": "999999999"}


@pytest.mark.parametrize("path", ["/", "/000000000000/mail"])
def test_a_request_that_is_too_large_is_refused_in_the_words_of_sqs(
    server: LiveServer, path: str
) -> None:
    with Raw(server.port) as wire:
        answer = wire.ask(request("POST", path, headers=JSON | TOO_LARGE))

    assert answer.status == 400
    assert answer.headers["x-amzn-query-error"] == "InvalidParameterValue;Sender"
    assert "InvalidParameterValueException" in json.loads(answer.body)["__type"]


LARGEST = 1024 * 1024
URL = "http://x/000000000000/large"


@pytest.mark.parametrize(
    ("headers", "start", "letter", "end"),
    [
        (JSON, f'{{"QueueUrl": "{URL}", "MessageBody": "', "\\u0041", '"}'),
        (FORM, f"Action=SendMessage&QueueUrl={URL}&MessageBody=", "%41", ""),
    ],
)
def test_a_request_may_hold_the_largest_message_with_every_letter_escaped(
    aws: Aws, http: httpx.Client, headers: dict[str, str], start: str, letter: str, end: str
) -> None:
    queue = aws.make_named("large")

    answer = http.post("/", headers=headers, content=start + letter * LARGEST + end)
    more = http.post("/", headers=headers, content=start + letter * (LARGEST + 120_000) + end)

    assert answer.status_code == 200, answer.text
    assert more.status_code == 400
    assert "a request takes at most" in more.text
    message = aws.receive_one(queue)
    assert message["Body"] == "A" * LARGEST
    aws.delete(queue, message["ReceiptHandle"])


def test_other_paths_are_refused_in_ours(server: LiveServer) -> None:
    with Raw(server.port) as wire:
        answer = wire.ask(request("POST", "/v1/queues/mail/messages", headers=JSON | TOO_LARGE))

    assert answer.status == 413
    assert json.loads(answer.body)["error"]["code"] == "too_large"
