"""Two protocols on one port: which one a request uses, and how it is parsed and answered."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import parse_qsl

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.edge.aws.errors import AwsError
from penstock.edge.aws.operation import Input
from penstock.edge.server.request import Request
from penstock.edge.sqs.api import protocol_of
from penstock.edge.sqs.wire import model
from tests.edge.sqs.requests import HOST, a_form, a_form_request, a_get, a_json_request

ID = "0190a3b4-0000-7000-8000-000000000000"


def asked(request: Request) -> Input:
    return protocol_of(request).read(request)[1]


def operation(request: Request) -> str:
    return protocol_of(request).read(request)[0].name


def refused(request: Request) -> AwsError:
    with pytest.raises(AwsError) as caught:
        asked(request)
    return caught.value


# --- which protocol ---


@pytest.mark.parametrize("path", ["/", "/123456789012/mail"])
def test_both_protocols_are_served_on_both_kinds_of_path(path):
    wanted = model.SendMessageRequest(QueueUrl="http://h/1/mail", MessageBody=msgspec.Raw(b'"hi"'))
    sent = b'{"QueueUrl": "http://h/1/mail", "MessageBody": "hi"}'
    fields = {"Action": "SendMessage", "QueueUrl": "http://h/1/mail", "MessageBody": "hi"}

    by_json = a_json_request("SendMessage", sent, path=path)
    by_form = a_form_request(path=path, **fields)

    for request in (by_json, by_form):
        assert operation(request) == "SendMessage"
        assert msgspec.json.encode(asked(request)) == msgspec.json.encode(wanted)


def test_an_action_in_the_query_string_is_enough_for_get_and_for_post():
    get = a_get("/?Action=ListQueues&QueueNamePrefix=a%2Bb+c")
    post = Request("POST", "/", get.query_bytes, HOST, b"")

    for request in (get, post):
        assert asked(request) == model.ListQueuesRequest(QueueNamePrefix="a+b c")


@pytest.mark.parametrize(
    "request_",
    [
        a_get("/"),
        a_get("/?Version=2012-11-05", {b"accept": b"application/json"}),
        a_form_request(QueueName="mail"),
        Request("POST", "/", b"", {**HOST, b"content-type": b"application/x-amz-json-1.0"}, b"{}"),
    ],
)
def test_a_request_that_names_no_operation_is_answered_404(request_):
    protocol = protocol_of(request_)
    with pytest.raises(AwsError) as caught:
        protocol.read(request_)

    response = protocol.refuse(caught.value, ID)

    assert (response.status, response.body) == (404, b"<UnknownOperationException/>")


@pytest.mark.parametrize("path", ["/", "/123456789012/mail"])
def test_an_unknown_operation_is_an_invalid_action_in_either_protocol(path):
    for request in (
        a_json_request("FooBar", path=path),
        a_form_request(Action="FooBar", path=path),
    ):
        error = refused(request)

        assert (error.status, error.code) == (400, "InvalidAction")
        assert error.message == "The action FooBar is not valid for this endpoint."


def test_a_foreign_target_is_an_unknown_operation():
    request = a_json_request("X")
    request.headers[b"x-amz-target"] = b"DynamoDB_20120810.ListTables"

    assert refused(request).shape.endswith("#UnknownOperationException")


@pytest.mark.parametrize("action", ["CreateQueue", "ListQueues"])
def test_queues_are_not_made_or_listed_at_a_queues_path(action):
    error = refused(a_form_request(path="/123456789012/mail", Action=action, QueueName="x"))

    assert error.message == f"The action {action} is not valid for this endpoint."


def test_another_queue_may_be_looked_up_at_a_queues_path():
    request = a_form_request(path="/1/mail", Action="GetQueueUrl", QueueName="other")

    assert asked(request) == model.GetQueueUrlRequest(QueueName="other")


def test_a_form_that_cannot_be_read_is_refused_in_xml():
    request = a_form_request(Action="ListQueues")
    request.body += b"&QueueNamePrefix=%ff"
    protocol = protocol_of(request)

    response = protocol.refuse(refused(request), ID)

    assert (response.status, response.content_type) == (400, b"text/xml")


@pytest.mark.parametrize("name", ["X-Amz-Algorithm", "X%2DAmz%2DAlgorithm"])
def test_a_presigned_url_names_its_operation(name):
    target = {b"x-amz-target": b"AmazonSQS.ListQueues"}
    url = f"/?Action=GetQueueUrl&QueueName=mail&{name}=AWS4-HMAC-SHA256"

    assert asked(a_get(url, target)) == model.GetQueueUrlRequest(QueueName="mail")
    assert operation(a_get("/?x=1", target)) == "ListQueues"
    assert operation(a_get(f"/?{name}=AWS4-HMAC-SHA256", target)) == "ListQueues"


@pytest.mark.parametrize("query", [b"", b"X-Amz-Algorithm=AWS4-HMAC-SHA256"])
def test_an_unsigned_content_type_does_not_change_how_a_request_is_read(query):
    body = b'{"QueueUrl":"q","MessageBody":"&Action=DeleteQueue&QueueUrl=other&x="}'
    request = a_json_request("SendMessage", body)
    request.headers[b"content-type"] = b"application/x-www-form-urlencoded"
    request.query_bytes = query

    assert operation(request) == "SendMessage"


# --- the Query protocol's parameters ---


def test_without_a_queue_url_the_path_names_the_queue():
    request = a_get("/123456789012/mail?Action=DeleteMessage&ReceiptHandle=h")

    assert asked(request) == model.DeleteMessageRequest(
        QueueUrl="/123456789012/mail", ReceiptHandle="h"
    )


def test_lists_are_read_in_the_order_of_their_numbers():
    pairs = [("Action", "UntagQueue"), ("TagKey.10", "j"), ("TagKey.2", "b"), ("TagKey.1", "a")]

    assert asked(a_form(pairs)) == model.UntagQueueRequest(TagKeys=["a", "b", "j"])


def test_attributes_and_tags_are_numbered_pairs():
    pairs = [
        ("Action", "CreateQueue"),
        ("QueueName", "mail"),
        ("Attribute.1.Name", "DelaySeconds"),
        ("Attribute.1.Value", "5"),
        ("Attribute.2.Name", "Policy"),
        ("Attribute.2.Value", ""),
        ("Tag.1.Key", "team"),
        ("Tag.1.Value", "blue"),
        ("Version", "2012-11-05"),
    ]

    assert asked(a_form(pairs)) == model.CreateQueueRequest(
        QueueName="mail", Attributes={"DelaySeconds": "5", "Policy": ""}, tags={"team": "blue"}
    )


def test_a_single_attribute_may_come_without_a_number():
    one = a_form(
        [("Action", "SetQueueAttributes"), ("Attribute.Name", "a"), ("Attribute.Value", "1")]
    )
    name = a_form([("Action", "GetQueueAttributes"), ("AttributeName", "All")])

    assert asked(one) == model.SetQueueAttributesRequest(Attributes={"a": "1"})
    assert asked(name) == model.GetQueueAttributesRequest(AttributeNames=["All"])


def test_entries_of_a_batch_carry_their_own_attributes():
    entry = "SendMessageBatchRequestEntry"
    pairs = [
        ("Action", "SendMessageBatch"),
        (f"{entry}.1.Id", "one"),
        (f"{entry}.1.MessageBody", "null"),
        (f"{entry}.1.DelaySeconds", "7"),
        (f"{entry}.1.MessageAttribute.1.Name", "a"),
        (f"{entry}.1.MessageAttribute.1.Value.DataType", "Binary"),
        (f"{entry}.1.MessageAttribute.1.Value.BinaryValue", "AQI="),
        (f"{entry}.1.MessageSystemAttribute.1.Name", "AWSTraceHeader"),
        (f"{entry}.1.MessageSystemAttribute.1.Value.StringValue", "Root=1"),
        (f"{entry}.2.Id", "two"),
        (f"{entry}.2.MessageGroupId", "null"),
    ]

    found = asked(a_form(pairs))

    assert isinstance(found, model.SendMessageBatchRequest)
    assert found.Entries is not None
    one, two = found.Entries
    assert (one.Id, bytes(one.MessageBody), one.DelaySeconds) == ("one", b'"null"', 7)
    assert one.MessageAttributes == {
        "a": model.MessageAttributeValue(DataType="Binary", BinaryValue=b"\x01\x02")
    }
    assert one.MessageSystemAttributes == {
        "AWSTraceHeader": model.MessageAttributeValue(StringValue="Root=1")
    }
    assert (two.Id, bytes(two.MessageBody), two.MessageGroupId) == ("two", b"", "null")


def test_permissions_have_names_of_their_own_in_a_form():
    pairs = [("Action", "AddPermission"), ("AWSAccountId.1", "1"), ("ActionName.1", "SendMessage")]

    assert asked(a_form(pairs)) == model.AddPermissionRequest(
        AWSAccountIds=["1"], Actions=["SendMessage"]
    )


@pytest.mark.parametrize("text", ["ten", "1.0", "", "1" * 30])
def test_an_invalid_number_is_an_invalid_parameter(text):
    error = refused(a_form_request(Action="ReceiveMessage", MaxNumberOfMessages=text))

    assert error.code == "InvalidParameterValue"
    assert "for parameter MaxNumberOfMessages is invalid" in error.message


def test_an_invalid_base64_value_is_rejected():
    pairs = [
        ("Action", "SendMessage"),
        ("MessageAttribute.1.Name", "a"),
        ("MessageAttribute.1.Value.BinaryValue", "%"),
    ]

    assert refused(a_form(pairs)).code == "SerializationException"


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=5), max_size=5))
@example({"": "a value", ".": "and one below it without a name"})
def test_whatever_a_form_holds_it_is_read_or_refused(fields):
    pairs = [("Action", "SendMessageBatch")]
    pairs += [(f"SendMessageBatchRequestEntry{name}", value) for name, value in fields.items()]

    with suppress(AwsError):
        asked(a_form(pairs))


@given(st.binary(max_size=30) | st.text("%%4aFg\\\\xuN{+ é", max_size=30).map(str.encode))
@example(b"100%+%zz%4")
def test_forms_are_read_as_urllib_reads_them(value):
    request = a_form_request(Action="ListQueues")
    request.body += b"&QueueNamePrefix=" + value.replace(b"&", b"")
    try:
        wanted = dict(parse_qsl(request.body.decode(), keep_blank_values=True, errors="strict"))
    except ValueError:
        assert refused(request).code == "SerializationException"
    else:
        assert asked(request) == model.ListQueuesRequest(QueueNamePrefix=wanted["QueueNamePrefix"])


@pytest.mark.parametrize("more", [b"&a" * 5_000, b"&a=" + b"%" * 20_000])
def test_a_form_that_takes_long_to_read_is_refused(more):
    request = a_form_request(Action="ListQueues")
    request.body += more

    assert refused(request).code == "SerializationException"
