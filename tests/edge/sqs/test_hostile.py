"""Whatever a client sends, it gets an SQS error, and never an internal one."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.edge.aws.flat import QueryMember, is_struct, members
from penstock.edge.sqs.wire.dialect import DIALECT
from penstock.edge.sqs.wire.operations import OPERATIONS
from tests.edge.api import Api
from tests.edge.sqs.aws import Aws, arn_of

pytestmark = pytest.mark.both_stores

# Chosen inputs: names that exist, and values that stores and parsers are known to dislike.
QUEUES = ("hostile", "hostile.fifo")
URLS = [f"http://x/000000000000/{name}" for name in QUEUES]
WORDS = st.sampled_from(
    [
        *URLS,
        *map(arn_of, URLS),
        "All",
        "String",
        "Number",
        "Binary",
        "VisibilityTimeout",
        "RedrivePolicy",
        '{"deadLetterTargetArn":1,"maxReceiveCount":[]}',
        "Policy",
        "{}",
        "RedriveAllowPolicy",
        "nul\0",
        "\ufffe",
        "☃" * 300,
        "",
        "x" * 5000,
        "-1",
        "1e999",
        "eyJ0YXNrSWQiOiIiLCJzb3VyY2VBcm4iOiIifQ==",
        "' OR 1=1 --",
    ]
)
NUMBERS = st.sampled_from([0, 1, -1, 10, 11, 60, 2**31, 2**63, 2**64, 10**30])


def values(kind: type) -> st.SearchStrategy[Any]:
    if is_struct(kind):
        return inputs(kind)
    return NUMBERS if kind is int else WORDS


def value(member: QueryMember) -> st.SearchStrategy[Any]:
    if member.kind is list:
        return st.lists(values(member.inner), max_size=3)
    if member.kind is dict:
        return st.dictionaries(WORDS, values(member.inner), max_size=3)
    return values(member.kind)


def inputs(kind: type) -> st.SearchStrategy[dict[str, Any]]:
    fields: dict[str, st.SearchStrategy[Any]] = {m.name: value(m) for m in members(kind, DIALECT)}
    usual = {"QueueUrl": st.sampled_from(URLS)} if "QueueUrl" in fields else {}
    others = {name: field for name, field in fields.items() if name not in usual}
    return st.fixed_dictionaries(usual, optional=others)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    # Without the operations that delete the queues that others need.
    names = sorted(OPERATIONS.keys() - {"DeleteQueue", "CreateQueue"})
    name = draw(st.sampled_from(names))
    return name, draw(inputs(OPERATIONS[name].input_type))


@pytest.fixture
def _queues(aws: Aws) -> None:
    aws.make_named("hostile")
    aws.make_named("hostile.fifo", FifoQueue="true")


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, 1, False, True, "", "x", [], {}, [1], [None], [[]], {"a": []}, 1.5]
)
POLICIES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "RedriveAllowPolicy": {
        "redrivePermission": st.sampled_from(["allowAll", "denyAll", "byQueue"]) | ODD,
        "sourceQueueArns": st.lists(st.sampled_from([arn_of(URLS[0]), 1, ""]), max_size=3) | ODD,
    },
    "RedrivePolicy": {
        "deadLetterTargetArn": st.sampled_from([*map(arn_of, URLS)]) | ODD,
        "maxReceiveCount": st.sampled_from([1, "5", 10**30]) | ODD,
    },
    "Policy": {"Statement": ODD | st.lists(ODD, max_size=2), "Id": ODD, "Version": ODD},
}


@pytest.mark.usefixtures("_queues")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(sorted(POLICIES)))
def test_no_well_formed_policy_is_a_mistake_of_ours(
    http: httpx.Client, data: Any, name: str
) -> None:
    policy = json.dumps(data.draw(st.fixed_dictionaries({}, optional=POLICIES[name])))
    queue = {"QueueUrl": URLS[0]}
    permission = {"Label": "a", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]}

    for operation, given_input in (
        ("SetQueueAttributes", {"Attributes": {name: policy}}),
        ("GetQueueAttributes", {"AttributeNames": ["All"]}),
        ("AddPermission", permission),
        ("RemovePermission", {"Label": "a"}),
        ("SetQueueAttributes", {"Attributes": {name: ""}}),
    ):
        answer = http.post(
            "/",
            content=json.dumps(queue | given_input),
            headers={"X-Amz-Target": f"AmazonSQS.{operation}"},
        )
        assert answer.status_code < 500, (operation, policy, answer.text)


@pytest.mark.usefixtures("_queues")
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=calls())
def test_no_input_is_a_mistake_of_ours(http: httpx.Client, call: tuple[str, dict]) -> None:
    operation, given_input = call
    if given_input.get("WaitTimeSeconds") not in (None, 0, 2**64):
        given_input["WaitTimeSeconds"] = 0

    answer = http.post(
        "/",
        content=json.dumps(given_input),
        headers={"X-Amz-Target": f"AmazonSQS.{operation}"},
    )

    assert answer.status_code < 500, (operation, given_input, answer.text)
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"


TEXTS = st.sampled_from(["", "é", "=", "AA==", "☃" * 300, "\t", "1e999"])
TYPES = st.sampled_from(["String", "Number", "Binary", "Binary.x", "", "é", ".", "x" * 500])
NAMES = st.sampled_from(["a", "AWS.b", "é", "x" * 100, "."])


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    attributes=st.dictionaries(NAMES, TEXTS, max_size=3),
    types=st.one_of(st.dictionaries(NAMES, TYPES, max_size=3).map(json.dumps), TEXTS),
    body=st.one_of(TEXTS, st.dictionaries(NAMES, TEXTS, max_size=2), st.none()),
)
def test_no_message_of_another_face_is_a_mistake_of_ours(
    aws: Aws, api: Api, attributes: dict, types: str, body: Any
) -> None:
    url = aws.make_named("from-elsewhere")
    sent = api.send("from-elsewhere", body, attributes=attributes | {"AWS.types": types})

    message = aws.receive_one(url, MessageAttributeNames=["All"], AttributeNames=["All"])

    aws.delete(url, message["ReceiptHandle"])
    assert message["MessageId"] == sent


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=WORDS, attributes=st.dictionaries(WORDS, WORDS, max_size=3), tags=st.booleans())
def test_no_queue_is_a_mistake_of_ours(
    http: httpx.Client, name: str, attributes: dict, tags: bool
) -> None:
    made = {"QueueName": name, "Attributes": attributes, "tags": attributes if tags else {}}

    for operation, given_input in (("CreateQueue", made), ("DeleteQueue", {"QueueUrl": name})):
        answer = http.post(
            "/",
            content=json.dumps(given_input),
            headers={"X-Amz-Target": f"AmazonSQS.{operation}"},
        )
        assert answer.status_code < 500, (given_input, answer.text)
