"""The types match the service model, compared with botocore's copy of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import botocore
import msgspec
import pytest

from penstock.edge.aws.errors import AwsError
from penstock.edge.aws.flat import QueryMember, members
from penstock.edge.sqs.wire import model
from penstock.edge.sqs.wire.dialect import DIALECT
from penstock.edge.sqs.wire.operations import OPERATIONS

_FOLDER = Path(botocore.__file__).parent / "data" / "sqs" / "2012-11-05"
MODEL: dict[str, Any] = json.loads(gzip.decompress((_FOLDER / "service-2.json.gz").read_bytes()))
SIMPLE = {
    str: "string",
    int: "integer",
    bool: "boolean",
    bytes: "blob",
    msgspec.Raw: "string",
}


def shapes_of(struct: type[msgspec.Struct], shape: str) -> list[str]:
    """The differences between a type of ours and a shape of the model."""
    wanted = MODEL["shapes"][shape]["members"]
    found = {field.encode_name: member for field, member in _with_names(struct)}
    differences = [f"{shape}.{name}" for name in wanted.keys() ^ found.keys()]
    for name in wanted.keys() & found.keys():
        differences += _differences(found[name], wanted[name]["shape"], f"{shape}.{name}")
    return differences


def _with_names(struct: type[msgspec.Struct]) -> list[tuple[Any, QueryMember]]:
    return list(zip(msgspec.structs.fields(struct), members(struct, DIALECT), strict=True))


def _differences(member: QueryMember, shape_name: str, place: str) -> list[str]:
    shape = MODEL["shapes"][shape_name]
    kind, inner = shape["type"], shape_name
    if kind in ("list", "map"):
        wanted = list if kind == "list" else dict
        inner = shape["member" if kind == "list" else "value"]["shape"]
        if member.kind is not wanted:
            return [f"{place} is a {kind}"]
        kind = MODEL["shapes"][inner]["type"]
    if kind == "structure":
        return shapes_of(member.inner, inner)
    is_same = SIMPLE[member.inner] == ("integer" if kind == "long" else kind)
    return [] if is_same else [f"{place} is a {kind}"]


def test_there_are_all_operations_and_no_others():
    assert OPERATIONS.keys() == MODEL["operations"].keys()


@pytest.mark.parametrize("name", sorted(MODEL["operations"]))
def test_an_operation_takes_and_gives_what_the_service_model_says(name):
    operation, wanted = OPERATIONS[name], MODEL["operations"][name]

    assert shapes_of(operation.input_type, wanted["input"]["shape"]) == []
    assert (operation.output_type is None) is ("output" not in wanted)
    if operation.output_type is not None:
        assert shapes_of(operation.output_type, wanted["output"]["shape"]) == []


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_empty_object_is_a_legal_input(name):
    operation = OPERATIONS[name]

    assert operation.decode(b"{}") == operation.input_type()
    assert operation.decode(b"") == operation.input_type()


def test_null_is_absent_and_unknown_members_are_passed_over():
    body = b'{"QueueUrl": null, "MaxNumberOfMessages": null, "Whatever": [1, {"a": 2}]}'

    assert OPERATIONS["ReceiveMessage"].decode(body) == model.ReceiveMessageRequest()


@pytest.mark.parametrize(
    "body",
    [
        b"no JSON",
        b"[]",
        b'{"QueueUrl": 7}',
        b'{"QueueUrl": "\xff"}',
        b'{"MaxNumberOfMessages": "10"}',
        b'{"MaxNumberOfMessages": 1.5}',
        b'{"AttributeNames": "All"}',
        b'{"AttributeNames": ' + b"[" * 100_000,
    ],
)
def test_a_body_that_is_not_the_json_of_the_input_is_a_serialization_exception(body):
    with pytest.raises(AwsError) as caught:
        OPERATIONS["ReceiveMessage"].decode(body)

    assert caught.value.shape == "com.amazon.coral.service#SerializationException"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("SendMessage", b'{"MessageBody": "\\ud800"}'),
        ("SendMessageBatch", b'{"Entries": [{"Id": "1", "MessageBody": "a\\uDC00"}]}'),
    ],
)
def test_half_a_surrogate_pair_in_a_body_is_an_invalid_content(name, body):
    with pytest.raises(AwsError) as caught:
        OPERATIONS[name].decode(body)

    assert caught.value.code == "InvalidMessageContents"


def test_a_binary_value_comes_and_goes_in_base64():
    body = b'{"MessageAttributes": {"a": {"DataType": "Binary", "BinaryValue": "AQI="}}}'

    asked = OPERATIONS["SendMessage"].decode(body)

    assert isinstance(asked, model.SendMessageRequest)
    assert asked.MessageAttributes == {
        "a": model.MessageAttributeValue(DataType="Binary", BinaryValue=b"\x01\x02")
    }
    assert msgspec.json.encode(asked.MessageAttributes) == (
        b'{"a":{"BinaryValue":"AQI=","DataType":"Binary"}}'
    )


@pytest.mark.parametrize(
    ("output", "json_text"),
    [
        (model.ReceiveMessageResult(), b"{}"),
        (model.ListQueuesResult([]), b"{}"),
        (model.GetQueueAttributesResult({}), b"{}"),
        (model.ListDeadLetterSourceQueuesResult([]), b'{"queueUrls":[]}'),
        (
            model.SendMessageResult(MD5OfMessageBody="m", MessageId="i"),
            b'{"MD5OfMessageBody":"m","MessageId":"i"}',
        ),
        (
            model.SendMessageBatchResult([model.SendMessageBatchResultEntry("1", "i", "m")]),
            b'{"Successful":[{"Id":"1","MessageId":"i","MD5OfMessageBody":"m"}]}',
        ),
    ],
)
def test_absent_and_empty_results_are_left_out(output, json_text):
    assert msgspec.json.encode(output) == json_text
