"""What the server itself refuses, before any operation, is told in the protocol that was spoken."""

from __future__ import annotations

import json

import pytest

from tests.edge.live import LiveServer
from tests.edge.raw import Raw, request

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


def test_other_paths_are_refused_in_ours(server: LiveServer) -> None:
    with Raw(server.port) as wire:
        answer = wire.ask(request("POST", "/v1/queues/mail/messages", headers=JSON | TOO_LARGE))

    assert answer.status == 413
    assert json.loads(answer.body)["error"]["code"] == "too_large"
