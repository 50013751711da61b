"""Access over SQS: unsigned, wrongly signed, with each role, with keys for other queues.

docs/security.md has the expected results; for all other operations see
tests/edge/native/test_rights.py.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from penstock.domain.access.api_key import ApiKey, Role, Scope
from penstock.domain.queue.queue import QueueSettings
from tests.edge.api import NO_TLS
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.native import rights_table
from tests.edge.native.rights_table import Table

URL = "http://127.0.0.1/000000000000/mail"
ARN = "arn:aws:sqs:us-east-1:000000000000:"
TASK = b64encode(f'{{"taskId":"1","sourceArn":"{ARN}letters"}}'.encode()).decode()
QUEUE = {"QueueUrl": URL}
HELD = {**QUEUE, "ReceiptHandle": "handle"}
ENTRY = {"Id": "one", "ReceiptHandle": "handle"}
# What is refused for another reason than the key's rights, to those who may: nothing is there.
ALLOWED = {
    "ReceiptHandleIsInvalid",
    "ResourceNotFound",
    "InvalidParameterValue",
    "AWS.SimpleQueueService.PurgeQueueInProgress",
}
INPUTS: dict[str, dict[str, Any]] = {
    "AddPermission": {**QUEUE, "Label": "l", "AWSAccountIds": ["000000000000"], "Actions": ["*"]},
    "CancelMessageMoveTask": {"TaskHandle": TASK},
    "ChangeMessageVisibility": {**HELD, "VisibilityTimeout": 1},
    "ChangeMessageVisibilityBatch": {**QUEUE, "Entries": [{**ENTRY, "VisibilityTimeout": 1}]},
    "CreateQueue": {"QueueName": "mail"},
    "DeleteMessage": HELD,
    "DeleteMessageBatch": {**QUEUE, "Entries": [ENTRY]},
    "DeleteQueue": QUEUE,
    "GetQueueAttributes": {**QUEUE, "AttributeNames": ["All"]},
    "GetQueueUrl": {"QueueName": "mail"},
    "ListDeadLetterSourceQueues": {"QueueUrl": URL.replace("mail", "letters")},
    "ListMessageMoveTasks": {"SourceArn": f"{ARN}letters"},
    "ListQueueTags": QUEUE,
    "ListQueues": {},
    "PurgeQueue": QUEUE,
    "ReceiveMessage": QUEUE,
    "RemovePermission": {**QUEUE, "Label": "l"},
    "SendMessage": {**QUEUE, "MessageBody": "x"},
    "SendMessageBatch": {**QUEUE, "Entries": [{"Id": "one", "MessageBody": "x"}]},
    "SetQueueAttributes": {**QUEUE, "Attributes": {"DelaySeconds": "1"}},
    "StartMessageMoveTask": {"SourceArn": f"{ARN}letters"},
    "TagQueue": {**QUEUE, "Tags": {"a": "b"}},
    "UntagQueue": {**QUEUE, "TagKeys": ["a"]},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path_factory.mktemp("rights"), auth={"required": "always"})
    with LiveServer(settings, has_duties=False) as started:
        yield started


@pytest.fixture(scope="module")
def wire(server: LiveServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30, verify=NO_TLS) as client:
        yield client


@pytest.fixture(scope="module")
def table() -> Table:
    return rights_table.written()


class Signer:
    def __init__(self, server: LiveServer, *roles: Role, queues: tuple[str, ...] = ("*",)) -> None:
        keys = server.broker.keys
        made: ApiKey = keys.create("a test", roles=roles, queues=queues).result().key
        server.broker.refresh_keys()
        self._credentials = Credentials(made.key_id, keys.signing_secret(made))
        self._url = server.url

    def with_secret(self, secret: str) -> Signer:
        other = object.__new__(Signer)
        other._credentials = Credentials(self._credentials.access_key, secret)
        other._url = self._url
        return other

    def headers(self, headers: dict[str, str], body: str) -> dict[str, str]:
        request = AWSRequest("POST", f"{self._url}/", data=body, headers=headers)
        SigV4Auth(self._credentials, "sqs", "us-east-1").add_auth(request)
        return dict(request.headers)


def call(wire: httpx.Client, operation: str, signer: Signer | None) -> tuple[str | None, str]:
    """The code of the error, if any, and the whole response."""
    body = json.dumps(INPUTS[operation])
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"AmazonSQS.{operation}",
    }
    if signer is not None:
        headers = signer.headers(headers, body)
    answer = wire.post("/", content=body, headers=headers)
    if answer.is_success:
        return None, answer.text
    return answer.json()["__type"].rpartition("#")[2].removesuffix("Exception"), answer.text


def test_every_operation_is_for_those_whom_the_table_names(
    server: LiveServer, wire: httpx.Client, table: Table
) -> None:
    everywhere = {role: Signer(server, role) for role in Role}
    own = {role: Signer(server, role, queues=("mail", "letters")) for role in Role}
    other = {role: Signer(server, role, queues=("bank*",)) for role in Role}
    forger = everywhere[Role.OPERATE].with_secret("guessed")
    assert set(INPUTS) == {name for method, name in table if method == "SQS"}

    for operation in INPUTS:
        _prepare(server)
        right = table["SQS", operation]
        assert call(wire, operation, None)[0] == "MissingAuthenticationToken", operation
        assert call(wire, operation, forger)[0] == "InvalidSignature", operation
        for role in Role:
            denied, text = call(wire, operation, other[role])
            if right.scope is Scope.FILTERED:
                assert denied is None
                assert "mail" not in text
            else:
                assert denied == "AccessDenied", (operation, role, text)
        for role in Role:
            if right.role not in (None, role):
                for signer in (everywhere[role], own[role]):
                    assert call(wire, operation, signer)[0] == "AccessDenied", (operation, role)
        for signers in (own, everywhere):
            _prepare(server)
            code, text = call(wire, operation, signers[right.role or Role.READ])
            assert code is None or code in ALLOWED, (operation, text)
            assert "AccessDenied" not in text


def _prepare(server: LiveServer) -> None:
    """The queue of the requests, and dead letters that can be moved back to it."""
    queues = server.broker.queues
    queues.put("letters", QueueSettings()).result()
    queues.put("mail", QueueSettings(dead_letter_queue="letters")).result()
