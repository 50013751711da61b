"""The page about the SQS API: its examples run, and its lists agree with the code."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from penstock.domain.access.api_key import Role
from penstock.domain.message.attribute_types import TYPES
from penstock.edge.sqs.wire.operations import OPERATIONS
from penstock.settings.values import SqsSettings
from tests.docs.snippets import ROOT, adapt, make_environment, read_blocks, run_script
from tests.edge.api import Api
from tests.edge.conftest import MakeProcess, MakeServer
from tests.edge.live import LiveServer
from tests.edge.process import ServerProcess
from tests.support.private_servers import free_port
from tests.support.waiting import eventually

PAGE = "docs/sqs.md"
PYTHON = Path(sys.executable)

Run = Callable[[str], str]


@pytest.fixture
def server(make_process: MakeProcess) -> ServerProcess:
    return make_process(server_port=free_port())  # the same after a restart


@pytest.fixture
def run(server: ServerProcess, tmp_path: Path) -> Run:
    """Run a script in its own folder, with the tools of this environment first in the path."""

    return lambda script: run_script(server, script, folder=tmp_path)


def _script(*marks: str) -> str:
    blocks = [read_blocks(PAGE, mark) for mark in marks]
    assert all(blocks), "a block is not there"
    return "\n".join(blocks)


# --- what it shows ---


def test_the_lines_for_the_aws_cli_work(run: Run) -> None:
    shown = run(_script("environment", "aws", "cli"))

    assert '"VisibilityTimeout": "60"' in shown
    assert '"ApproximateNumberOfMessages": "0"' in shown
    assert '"ApproximateNumberOfMessagesNotVisible": "0"' in shown


def test_the_program_with_boto3_works(run: Run, tmp_path: Path, server: ServerProcess) -> None:
    (tmp_path / "program.py").write_text(adapt(server, _script("boto3")))

    shown = run(f"{_script('environment')}\npython program.py")

    assert shown.splitlines() == ["hello", "number 0", "number 1", "number 2"]


def test_a_key_shows_what_aws_tools_sign_with(run: Run, server: ServerProcess) -> None:
    lines = run(_script("keys")).splitlines()

    names = [line.partition("=")[0] for line in lines]
    assert names == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]

    stranger = Api(server.url)
    eventually(lambda: stranger.call("GET", "/v1/queues").status_code == 401)
    signed = "\n".join([*(f"export {line}" for line in lines), "aws sqs list-queues"])
    run(f"{_script('environment', 'aws')}\n{signed}")


def test_the_queues_of_elasticmqs_file_can_be_created_twice(run: Run) -> None:
    made = run(_script("environment", "aws", "elasticmq", "elasticmq"))
    native = run(_script("elasticmq-native"))

    attributes = "--attribute-names VisibilityTimeout RedrivePolicy --output text"
    both = [
        run(
            f"{_script('environment', 'aws')}\naws sqs get-queue-attributes --queue-url {queue}"
            f" {attributes}"
        ).replace(queue, "Q")
        for queue in ("queue1", "queue2")
    ]
    assert made.count("orders.fifo") == 2
    assert "payments.fifo" in native
    assert both[0] == both[1]
    assert "Q-dead" in both[0]


def test_the_celery_application_works(
    run: Run, server: ServerProcess, start_worker: Callable[[str], None]
) -> None:
    start_worker(_script("celery"))

    assert run(_script("celery-call")).strip() == "5"


def test_with_the_patch_a_celery_worker_survives_a_restart_of_the_server(
    run: Run, server: ServerProcess, start_worker: Callable[[str], None]
) -> None:
    start_worker(_script("celery", "celery-patience"))
    run(_script("celery-call"))

    server.end()
    _drop_one_connection(server.port)
    server.start()

    assert run(_script("celery-call")).strip() == "5"


def _drop_one_connection(port: int) -> None:
    """Accept one connection in place of the stopped server, and close it."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(20)
        listener.accept()[0].close()


@pytest.fixture
def start_worker(server: ServerProcess, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    workers = []

    def start(tasks: str) -> None:
        tasks = adapt(server, tasks).replace("file:///tmp", f"file://{tmp_path}")
        (tmp_path / "tasks.py").write_text(tasks)
        workers.append(
            subprocess.Popen(
                _script("celery-worker").split(),
                cwd=tmp_path,
                env=make_environment(server),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    yield start

    for worker in workers:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(20)


# --- lists ---


def _rows(heading: str) -> list[list[str]]:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_all_operations_are_listed() -> None:
    assert [row[0] for row in _rows("Operations")[1:]] == list(OPERATIONS)


def test_the_settings_are_those_of_the_code() -> None:
    listed = [row for row in _rows("Settings") if row[0].startswith("`sqs.")]

    defaults = {
        f"`sqs.{field.name}`": "unset" if field.default is None else f"`{field.default}`".lower()
        for field in dataclasses.fields(SqsSettings)
    }
    assert {row[0]: row[1] for row in listed} == defaults


def test_the_attribute_with_the_types_of_others_has_the_name_of_the_code() -> None:
    [(_, ours)] = [row for row in _rows("Mapping") if row[0] == "MessageAttributes"]

    assert f"`{TYPES}`" in ours


def test_each_operation_needs_the_role_that_is_listed(make_server: MakeServer) -> None:
    server = make_server(auth={"required": "always"})
    clients = {role: _client(server, role) for role in Role}

    allowed = {
        operation: {role for role, sqs in clients.items() if not _is_denied(sqs, operation)}
        for operation in OPERATIONS
    }

    listed = {row[0]: row[1] for row in _rows("Operations")[1:]}
    assert allowed == {
        operation: set(Role) if role == "any" else {Role(role)}
        for operation, role in listed.items()
    }


# These do not exist: a caller with the right role gets an error about that.
NOWHERE = "arn:aws:sqs:us-east-1:000000000000:nowhere"
GIVEN: dict[str, Any] = {
    "AWSAccountIds": ["000000000000"],
    "Actions": ["*"],
    "Attributes": {"DelaySeconds": "1"},
    "Id": "one",
    "Label": "label",
    "MessageBody": "hello",
    "QueueName": "nowhere",
    "QueueUrl": "nowhere",
    "ReceiptHandle": "handle",
    "SourceArn": NOWHERE,
    "TagKeys": ["tag"],
    "Tags": {"tag": "x"},
    "TaskHandle": b64encode(f'{{"taskId":"1","sourceArn":"{NOWHERE}"}}'.encode()).decode(),
    "VisibilityTimeout": 1,
}


def _client(server: LiveServer, role: Role) -> Any:
    made = server.broker.keys.create("docs", roles=(role,), queues=("*",)).result()
    key_id = made.key.key_id
    eventually(lambda: server.broker.keyring.signer(key_id))  # the keys are read once a second
    return boto3.client(
        "sqs",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=server.broker.keys.signing_secret(made.key),
    )


def _is_denied(sqs: Any, operation: str) -> bool:
    shape = sqs.meta.service_model.operation_model(operation).input_shape
    given = {name: _given(shape, name) for name in shape.required_members}
    try:
        getattr(sqs, xform_name(operation))(**given)
    except ClientError as error:
        return bool(error.response["Error"]["Code"] == "AccessDenied")
    if operation == "CreateQueue":
        sqs.delete_queue(QueueUrl=GIVEN["QueueUrl"])
    return False


def _given(shape: Any, name: str) -> Any:
    if name != "Entries":
        return GIVEN[name]
    entry = shape.members[name].member
    return [{field: GIVEN[field] for field in entry.required_members}]
