"""Two protocols on one port: which one a request speaks, what it asks, how it is answered."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from contextlib import suppress
from urllib.parse import parse_qsl

import msgspec
import pytest
from botocore import parsers
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.edge.http.request import Request
from penstock.edge.sqs import errors, model, protocols
from penstock.edge.sqs.calls import OPERATIONS, Call
from penstock.edge.sqs.errors import SqsError
from tests.edge.sqs.requests import HOST, a_form, a_form_request, a_get, a_json_request

ID = "0190a3b4-0000-7000-8000-000000000000"


def asked(request: Request) -> Call:
    return protocols.of(request).read(request)


def refused(request: Request) -> SqsError:
    with pytest.raises(SqsError) as caught:
        asked(request)
    return caught.value


# --- which protocol ---


@pytest.mark.parametrize("path", ["/", "/123456789012/mail"])
def test_both_protocols_are_served_on_both_kinds_of_path(path):
    wanted = model.SendMessageRequest(QueueUrl="http://h/1/mail", MessageBody=msgspec.Raw(b'"hi"'))
    sent = b'{"QueueUrl": "http://h/1/mail", "MessageBody": "hi"}'
    fields = {"Action": "SendMessage", "QueueUrl": "http://h/1/mail", "MessageBody": "hi"}

    by_json = asked(a_json_request("SendMessage", sent, path=path))
    by_form = asked(a_form_request(path=path, **fields))

    for call in (by_json, by_form):
        assert call.operation.name == "SendMessage"
        assert msgspec.json.encode(call.input) == msgspec.json.encode(wanted)


def test_an_action_in_the_query_string_is_enough_for_get_and_for_post():
    get = a_get("/?Action=ListQueues&QueueNamePrefix=a%2Bb+c")
    post = Request("POST", "/", get.query_bytes, HOST, b"")

    for request in (get, post):
        assert asked(request).input == model.ListQueuesRequest(QueueNamePrefix="a+b c")


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
    protocol = protocols.of(request_)
    with pytest.raises(SqsError) as caught:
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

    assert asked(request).input == model.GetQueueUrlRequest(QueueName="other")


def test_a_form_that_cannot_be_read_is_refused_in_xml():
    request = a_form_request(Action="ListQueues")
    request.body += b"&QueueNamePrefix=%ff"
    protocol = protocols.of(request)

    response = protocol.refuse(refused(request), ID)

    assert (response.status, response.content_type) == (400, b"text/xml")


@pytest.mark.parametrize("name", ["X-Amz-Algorithm", "X%2DAmz%2DAlgorithm"])
def test_a_presigned_url_says_itself_what_it_is_for(name):
    target = {b"x-amz-target": b"AmazonSQS.ListQueues"}
    url = f"/?Action=GetQueueUrl&QueueName=mail&{name}=AWS4-HMAC-SHA256"

    call = asked(a_get(url, target))

    assert call.input == model.GetQueueUrlRequest(QueueName="mail")
    assert asked(a_get("/?x=1", target)).operation.name == "ListQueues"


# --- the Query protocol's parameters ---


def test_without_a_queue_url_the_path_names_the_queue():
    request = a_get("/123456789012/mail?Action=DeleteMessage&ReceiptHandle=h")

    assert asked(request).input == model.DeleteMessageRequest(
        QueueUrl="/123456789012/mail", ReceiptHandle="h"
    )


def test_lists_are_read_in_the_order_of_their_numbers():
    pairs = [("Action", "UntagQueue"), ("TagKey.10", "j"), ("TagKey.2", "b"), ("TagKey.1", "a")]

    assert asked(a_form(pairs)).input == model.UntagQueueRequest(TagKeys=["a", "b", "j"])


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

    assert asked(a_form(pairs)).input == model.CreateQueueRequest(
        QueueName="mail", Attributes={"DelaySeconds": "5", "Policy": ""}, tags={"team": "blue"}
    )


def test_a_single_attribute_may_come_without_a_number():
    one = a_form(
        [("Action", "SetQueueAttributes"), ("Attribute.Name", "a"), ("Attribute.Value", "1")]
    )
    name = a_form([("Action", "GetQueueAttributes"), ("AttributeName", "All")])

    assert asked(one).input == model.SetQueueAttributesRequest(Attributes={"a": "1"})
    assert asked(name).input == model.GetQueueAttributesRequest(AttributeNames=["All"])


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

    found = asked(a_form(pairs)).input

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

    assert asked(a_form(pairs)).input == model.AddPermissionRequest(
        AWSAccountIds=["1"], Actions=["SendMessage"]
    )


@pytest.mark.parametrize("text", ["ten", "1.0", "", "1" * 30])
def test_a_number_that_is_none_is_an_invalid_parameter(text):
    error = refused(a_form_request(Action="ReceiveMessage", MaxNumberOfMessages=text))

    assert error.code == "InvalidParameterValue"
    assert "for parameter MaxNumberOfMessages is invalid" in error.message


def test_a_base64_value_that_is_none_is_refused():
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

    with suppress(SqsError):
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
        assert asked(request).input == model.ListQueuesRequest(
            QueueNamePrefix=wanted["QueueNamePrefix"]
        )


@pytest.mark.parametrize("more", [b"&a" * 5_000, b"&a=" + b"%" * 20_000])
def test_a_form_that_takes_long_to_read_is_refused(more):
    request = a_form_request(Action="ListQueues")
    request.body += more

    assert refused(request).code == "SerializationException"


# --- answers ---


def test_json_answers_carry_the_media_type_and_the_request_id():
    output = model.GetQueueUrlResult("http://h/1/mail")

    response = protocols.JSON.answer(OPERATIONS["GetQueueUrl"], output, ID)

    assert response.status == 200
    assert response.content_type == b"application/x-amz-json-1.0"
    assert dict(response.headers)[b"x-amzn-RequestId"] == ID.encode()
    assert response.body == b'{"QueueUrl":"http://h/1/mail"}'


def test_an_operation_without_output_is_answered_with_no_body_in_json():
    response = protocols.JSON.answer(OPERATIONS["DeleteMessage"], None, ID)

    assert (response.status, response.body) == (200, b"")
    assert response.content_type == b"application/x-amz-json-1.0"


def test_a_json_refusal_has_its_type_and_its_old_code():
    response = protocols.JSON.refuse(errors.queue_does_not_exist(), ID)

    assert response.status == 400
    assert response.content_type == b"application/x-amz-json-1.0"
    assert response.body == (
        b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist",'
        b'"message":"The specified queue does not exist."}'
    )
    assert dict(response.headers) == {
        b"x-amzn-RequestId": ID.encode(),
        b"x-amzn-query-error": b"AWS.SimpleQueueService.NonExistentQueue;Sender",
    }


def test_trouble_of_ours_is_the_receivers_fault():
    response = protocols.JSON.refuse(errors.internal_failure(), ID)

    assert dict(response.headers)[b"x-amzn-query-error"] == b"InternalFailure;Receiver"


def xml_of(operation: str, output: model.Output | None) -> str:
    response = protocols.of(a_form_request(Action=operation)).answer(
        OPERATIONS[operation], output, ID
    )
    assert (response.status, response.content_type) == (200, b"text/xml")
    text = response.body.decode()
    start = (
        f'<?xml version="1.0"?><{operation}Response '
        'xmlns="http://queue.amazonaws.com/doc/2012-11-05/">'
    )
    end = f"<ResponseMetadata><RequestId>{ID}</RequestId></ResponseMetadata></{operation}Response>"
    assert text.startswith(start)
    assert text.endswith(end)
    return text[len(start) : -len(end)]


def test_a_received_message_is_written_in_the_order_of_the_document():
    message = model.Message(
        MessageId="i",
        ReceiptHandle="h",
        MD5OfBody="m",
        Body=msgspec.Raw(b'"<a>\\r\\n&\\"\\u00e9"'),
        Attributes={"SenderId": "s", "SentTimestamp": "1"},
        MD5OfMessageAttributes="n",
        MessageAttributes={
            "b": model.MessageAttributeValue(DataType="Binary", BinaryValue=b"\x01\x02"),
            "s": model.MessageAttributeValue(DataType="String", StringValue="x"),
        },
    )

    assert xml_of("ReceiveMessage", model.ReceiveMessageResult([message])) == (
        "<ReceiveMessageResult><Message><MessageId>i</MessageId><ReceiptHandle>h</ReceiptHandle>"
        "<MD5OfBody>m</MD5OfBody><Body>&lt;a&gt;&#13;\n&amp;&quot;é</Body>"
        "<Attribute><Name>SenderId</Name><Value>s</Value></Attribute>"
        "<Attribute><Name>SentTimestamp</Name><Value>1</Value></Attribute>"
        "<MD5OfMessageAttributes>n</MD5OfMessageAttributes>"
        "<MessageAttribute><Name>b</Name><Value><BinaryValue>AQI=</BinaryValue>"
        "<DataType>Binary</DataType></Value></MessageAttribute>"
        "<MessageAttribute><Name>s</Name><Value><StringValue>x</StringValue>"
        "<DataType>String</DataType></Value></MessageAttribute>"
        "</Message></ReceiveMessageResult>"
    )


@pytest.mark.parametrize(
    ("operation", "output", "text"),
    [
        ("ReceiveMessage", model.ReceiveMessageResult(), "<ReceiveMessageResult/>"),
        ("DeleteMessage", None, ""),
        (
            "ListQueues",
            model.ListQueuesResult(["u1", "u2"], "t"),
            "<ListQueuesResult><QueueUrl>u1</QueueUrl><QueueUrl>u2</QueueUrl>"
            "<NextToken>t</NextToken></ListQueuesResult>",
        ),
        (
            "ListDeadLetterSourceQueues",
            model.ListDeadLetterSourceQueuesResult(["u"]),
            "<ListDeadLetterSourceQueuesResult><QueueUrl>u</QueueUrl>"
            "</ListDeadLetterSourceQueuesResult>",
        ),
        (
            "GetQueueAttributes",
            model.GetQueueAttributesResult({"QueueArn": "arn"}),
            "<GetQueueAttributesResult><Attribute><Name>QueueArn</Name><Value>arn</Value>"
            "</Attribute></GetQueueAttributesResult>",
        ),
        (
            "ListQueueTags",
            model.ListQueueTagsResult({"team": ""}),
            "<ListQueueTagsResult><Tag><Key>team</Key><Value/></Tag></ListQueueTagsResult>",
        ),
        (
            "SendMessageBatch",
            model.SendMessageBatchResult(
                [model.SendMessageBatchResultEntry("a", "i", "m")],
                [model.BatchResultErrorEntry("b", True, "C", "t")],
            ),
            "<SendMessageBatchResult><SendMessageBatchResultEntry><Id>a</Id>"
            "<MessageId>i</MessageId><MD5OfMessageBody>m</MD5OfMessageBody>"
            "</SendMessageBatchResultEntry><BatchResultErrorEntry><Id>b</Id>"
            "<SenderFault>true</SenderFault><Code>C</Code><Message>t</Message>"
            "</BatchResultErrorEntry></SendMessageBatchResult>",
        ),
        (
            "ListMessageMoveTasks",
            model.ListMessageMoveTasksResult(
                [model.ListMessageMoveTasksResultEntry(Status="RUNNING", StartedTimestamp=1)]
            ),
            "<ListMessageMoveTasksResult><ListMessageMoveTasksResultEntry>"
            "<Status>RUNNING</Status><StartedTimestamp>1</StartedTimestamp>"
            "</ListMessageMoveTasksResultEntry></ListMessageMoveTasksResult>",
        ),
    ],
)
def test_results_are_written_with_the_documents_elements(operation, output, text):
    assert xml_of(operation, output) == text


def test_a_refusal_in_xml_is_what_older_sdks_parse():
    error = errors.queue_does_not_exist()
    response = protocols.of(a_form_request(Action="PurgeQueue")).refuse(error, ID)

    parsed = parsers.QueryParser().parse(
        {"body": response.body, "headers": {}, "status_code": response.status}, None
    )

    assert b"<Detail/></Error><RequestId>" in response.body
    assert parsed["Error"]["Type"] == "Sender"
    assert parsed["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
    assert parsed["Error"]["Message"] == (
        "The specified queue does not exist for this wsdl version."
    )
    assert parsed["ResponseMetadata"]["RequestId"] == ID


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_out_of_the_xml_as_it_went_in_save_what_xml_cannot_hold(text):
    body = msgspec.Raw(msgspec.json.encode(text))
    message = model.Message("i", "h", "m", body)

    found = ET.fromstring(xml_of("ReceiveMessage", model.ReceiveMessageResult([message])))

    kept = "".join("\ufffd" if _is_unfit(c) else c for c in text)
    assert (found.findtext("Message/Body") or "") == kept


def _is_unfit(character: str) -> bool:
    return (character < " " and character not in "\t\n\r") or character in "\ufffe\uffff"


def test_whoever_asks_by_form_and_accepts_json_gets_the_same_tree_as_json():
    request = a_form_request(Action="ReceiveMessage", accept="application/json")
    message = model.Message("i", "h", "m", msgspec.Raw(b'"hi"'), Attributes={"SenderId": "s"})

    response = protocols.of(request).answer(
        OPERATIONS["ReceiveMessage"], model.ReceiveMessageResult([message]), ID
    )

    assert response.content_type == b"application/json"
    assert json.loads(response.body) == {
        "ReceiveMessageResponse": {
            "ReceiveMessageResult": {
                "messages": [
                    {
                        "MessageId": "i",
                        "ReceiptHandle": "h",
                        "MD5OfBody": "m",
                        "Body": "hi",
                        "Attributes": [{"Name": "SenderId", "Value": "s"}],
                        "MD5OfMessageAttributes": None,
                        "MessageAttributes": None,
                    }
                ]
            },
            "ResponseMetadata": {"RequestId": ID},
        }
    }


def test_a_refusal_for_those_who_accept_json_is_json():
    request = a_form_request(Action="X", accept="application/json")

    response = protocols.of(request).refuse(errors.missing_parameter("QueueUrl"), ID)

    assert response.status == 400
    assert json.loads(response.body) == {
        "Error": {
            "Code": "MissingParameter",
            "Message": "The request must contain the parameter QueueUrl.",
            "Type": "Sender",
        },
        "RequestId": ID,
    }
