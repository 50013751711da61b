"""How both protocols render results and errors: JSON, XML, and JSON for form requests."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import msgspec
import pytest
from botocore import parsers
from hypothesis import given
from hypothesis import strategies as st

from penstock.edge.aws.errors import internal_failure
from penstock.edge.aws.operation import AwsOutput
from penstock.edge.sqs import errors
from penstock.edge.sqs.api import protocol_of
from penstock.edge.sqs.wire import model
from penstock.edge.sqs.wire.operations import JSON, OPERATIONS
from tests.edge.sqs.requests import a_form_request

ID = "0190a3b4-0000-7000-8000-000000000000"


def test_json_answers_carry_the_media_type_and_the_request_id():
    output = model.GetQueueUrlResult("http://h/1/mail")

    response = JSON.answer(OPERATIONS["GetQueueUrl"], output, ID)

    assert response.status == 200
    assert response.content_type == b"application/x-amz-json-1.0"
    assert dict(response.headers)[b"x-amzn-RequestId"] == ID.encode()
    assert response.body == b'{"QueueUrl":"http://h/1/mail"}'


def test_an_operation_without_output_is_answered_with_no_body_in_json():
    response = JSON.answer(OPERATIONS["DeleteMessage"], None, ID)

    assert (response.status, response.body) == (200, b"")
    assert response.content_type == b"application/x-amz-json-1.0"


def test_a_json_refusal_has_its_type_and_its_old_code():
    response = JSON.refuse(errors.queue_does_not_exist(), ID)

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
    response = JSON.refuse(internal_failure(), ID)

    assert dict(response.headers)[b"x-amzn-query-error"] == b"InternalFailure;Receiver"


def xml_of(operation: str, output: AwsOutput | None) -> str:
    response = protocol_of(a_form_request(Action=operation)).answer(
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
    response = protocol_of(a_form_request(Action="PurgeQueue")).refuse(error, ID)

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


def test_a_form_request_that_accepts_json_gets_the_same_tree_as_json():
    request = a_form_request(Action="ReceiveMessage", accept="application/json")
    message = model.Message("i", "h", "m", msgspec.Raw(b'"hi"'), Attributes={"SenderId": "s"})

    response = protocol_of(request).answer(
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

    response = protocol_of(request).refuse(errors.missing_parameter("QueueUrl"), ID)

    assert response.status == 400
    assert json.loads(response.body) == {
        "Error": {
            "Code": "MissingParameter",
            "Message": "The request must contain the parameter QueueUrl.",
            "Type": "Sender",
        },
        "RequestId": ID,
    }
