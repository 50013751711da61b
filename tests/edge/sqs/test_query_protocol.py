"""The Query protocol on the wire: every operation, its input fields and output elements."""

from __future__ import annotations

import re

from tests.edge.api import a_name
from tests.edge.sqs.aws import Aws, arn_of
from tests.edge.sqs.query import Query, refusal, value

# --- each operation ---


def test_queues_are_made_found_listed_and_deleted(query: Query) -> None:
    name = a_name("xml")

    made = query.result(
        "CreateQueue",
        QueueName=name,
        Attribute__1__Name="VisibilityTimeout",
        Attribute__1__Value="40",
        Attribute__2__Name="DelaySeconds",
        Attribute__2__Value="1",
        Tag__1__Key="team",
        Tag__1__Value="mail",
    )

    url = value(made, "QueueUrl")
    assert made == f"<QueueUrl>{url}</QueueUrl>"
    assert query.result("GetQueueUrl", QueueName=name) == made
    assert query.result("ListQueues", QueueNamePrefix=name) == made
    assert query.result("ListQueues", QueueNamePrefix="no-such") == ""
    shown = query.result(
        "GetQueueAttributes",
        QueueUrl=url,
        AttributeName__1="VisibilityTimeout",
        AttributeName__2="QueueArn",
        AttributeName__3="DelaySeconds",
    )
    assert shown == (
        "<Attribute><Name>DelaySeconds</Name><Value>1</Value></Attribute>"
        "<Attribute><Name>VisibilityTimeout</Name><Value>40</Value></Attribute>"
        f"<Attribute><Name>QueueArn</Name><Value>{arn_of(url)}</Value></Attribute>"
    )
    assert query.result("ListQueueTags", QueueUrl=url) == (
        "<Tag><Key>team</Key><Value>mail</Value></Tag>"
    )
    query.nothing("DeleteQueue", QueueUrl=url)
    assert refusal(query.ask("GetQueueUrl", QueueName=name))[1].endswith("NonExistentQueue")


def test_pages_of_queues(query: Query, aws: Aws) -> None:
    start = a_name("xml-pages") + "-"
    first, second = [aws.make_named(f"{start}{n}") for n in range(2)]

    page = query.result("ListQueues", QueueNamePrefix=start, MaxResults=1)

    token = value(page, "NextToken")
    assert page == f"<QueueUrl>{first}</QueueUrl><NextToken>{token}</NextToken>"
    assert query.result("ListQueues", QueueNamePrefix=start, MaxResults=1, NextToken=token) == (
        f"<QueueUrl>{second}</QueueUrl>"
    )


def test_attributes_are_set(query: Query, aws: Aws, queue: str) -> None:
    query.nothing(
        "SetQueueAttributes", QueueUrl=queue, Attribute__Name="DelaySeconds", Attribute__Value=7
    )

    assert aws.attribute(queue, "DelaySeconds") == "7"
    query.nothing(
        "SetQueueAttributes",
        QueueUrl=queue,
        Attribute__1__Name="DelaySeconds",
        Attribute__1__Value=8,
    )
    assert aws.attribute(queue, "DelaySeconds") == "8"


def test_tags_are_set_and_removed(query: Query, queue: str) -> None:
    query.nothing(
        "TagQueue",
        QueueUrl=queue,
        Tag__1__Key="a",
        Tag__1__Value="<1>",
        Tag__2__Key="b",
        Tag__2__Value="2",
    )
    query.nothing("UntagQueue", QueueUrl=queue, TagKey__1="b")

    assert query.result("ListQueueTags", QueueUrl=queue) == (
        "<Tag><Key>a</Key><Value>&lt;1&gt;</Value></Tag>"
    )


def test_permissions_are_given_and_taken(query: Query, aws: Aws, queue: str) -> None:
    query.nothing(
        "AddPermission",
        QueueUrl=queue,
        Label="l",
        AWSAccountId__1="111111111111",
        ActionName__1="SendMessage",
        ActionName__2="ReceiveMessage",
    )

    assert '"Action":["SQS:SendMessage","SQS:ReceiveMessage"]' in str(aws.attributes(queue))
    query.nothing("RemovePermission", QueueUrl=queue, Label="l")
    assert aws.attribute(queue, "Policy") is None


def test_a_message_is_sent_received_hidden_and_deleted(query: Query, queue: str) -> None:
    sent = query.result(
        "SendMessage",
        QueueUrl=queue,
        MessageBody="a<b>\r\n&c é",
        MessageAttribute__1__Name="k",
        MessageAttribute__1__Value__DataType="String",
        MessageAttribute__1__Value__StringValue="x",
        MessageAttribute__2__Name="bin",
        MessageAttribute__2__Value__DataType="Binary",
        MessageAttribute__2__Value__BinaryValue="AAE=",
        MessageSystemAttribute__1__Name="AWSTraceHeader",
        MessageSystemAttribute__1__Value__DataType="String",
        MessageSystemAttribute__1__Value__StringValue="Root=1",
        MessageGroupId="g",
        DelaySeconds=0,
    )
    digests = {
        name: value(sent, name)
        for name in (
            "MD5OfMessageBody",
            "MD5OfMessageAttributes",
            "MD5OfMessageSystemAttributes",
            "MessageId",
        )
    }
    assert sent == "".join(f"<{name}>{text}</{name}>" for name, text in digests.items())

    got = query.result(
        "ReceiveMessage",
        QueueUrl=queue,
        MaxNumberOfMessages=10,
        VisibilityTimeout=10,
        WaitTimeSeconds=0,
        AttributeName__1="MessageGroupId",
        AttributeName__2="AWSTraceHeader",
        MessageAttributeName__1="All",
    )

    handle = value(got, "ReceiptHandle")
    assert got == (
        f"<Message><MessageId>{digests['MessageId']}</MessageId>"
        f"<ReceiptHandle>{handle}</ReceiptHandle>"
        f"<MD5OfBody>{digests['MD5OfMessageBody']}</MD5OfBody>"
        "<Body>a&lt;b&gt;&#13;\n&amp;c é</Body>"
        "<Attribute><Name>AWSTraceHeader</Name><Value>Root=1</Value></Attribute>"
        "<Attribute><Name>MessageGroupId</Name><Value>g</Value></Attribute>"
        f"<MD5OfMessageAttributes>{digests['MD5OfMessageAttributes']}</MD5OfMessageAttributes>"
        "<MessageAttribute><Name>k</Name><Value><StringValue>x</StringValue>"
        "<DataType>String</DataType></Value></MessageAttribute>"
        "<MessageAttribute><Name>bin</Name><Value><BinaryValue>AAE=</BinaryValue>"
        "<DataType>Binary</DataType></Value></MessageAttribute></Message>"
    )
    query.nothing(
        "ChangeMessageVisibility", QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=20
    )
    query.nothing("DeleteMessage", QueueUrl=queue, ReceiptHandle=handle)
    assert query.result("ReceiveMessage", QueueUrl=queue) == ""


def test_system_attributes_by_their_newer_name(query: Query, aws: Aws, queue: str) -> None:
    aws.send(queue)

    got = query.result(
        "ReceiveMessage", QueueUrl=queue, MessageSystemAttributeName__1="ApproximateReceiveCount"
    )

    assert "<Attribute><Name>ApproximateReceiveCount</Name><Value>1</Value></Attribute>" in got


def test_batches(query: Query, queue: str) -> None:
    start = "SendMessageBatchRequestEntry__"
    sent = query.result(
        "SendMessageBatch",
        QueueUrl=queue,
        **{
            f"{start}1__Id": "good",
            f"{start}1__MessageBody": "good",
            f"{start}1__MessageAttribute__1__Name": "k",
            f"{start}1__MessageAttribute__1__Value__DataType": "String",
            f"{start}1__MessageAttribute__1__Value__StringValue": "x",
            f"{start}2__Id": "bad",
            f"{start}2__MessageBody": "bad",
            f"{start}2__DelaySeconds": 901,
        },
    )

    assert sent == (
        "<SendMessageBatchResultEntry><Id>good</Id>"
        f"<MessageId>{value(sent, 'MessageId')}</MessageId>"
        f"<MD5OfMessageBody>{value(sent, 'MD5OfMessageBody')}</MD5OfMessageBody>"
        "<MD5OfMessageAttributes>a45daa70926828a2f0a1db3418e6feb4</MD5OfMessageAttributes>"
        "</SendMessageBatchResultEntry>"
        "<BatchResultErrorEntry><Id>bad</Id><SenderFault>true</SenderFault>"
        "<Code>InvalidParameterValue</Code><Message>Value 901 for parameter DelaySeconds is "
        "invalid. Reason: DelaySeconds must be &gt;= 0 and &lt;= 900.</Message>"
        "</BatchResultErrorEntry>"
    )
    handle = value(query.result("ReceiveMessage", QueueUrl=queue), "ReceiptHandle")
    changed = query.result(
        "ChangeMessageVisibilityBatch",
        QueueUrl=queue,
        ChangeMessageVisibilityBatchRequestEntry__1__Id="c",
        ChangeMessageVisibilityBatchRequestEntry__1__ReceiptHandle=handle,
        ChangeMessageVisibilityBatchRequestEntry__1__VisibilityTimeout=9,
    )
    assert changed == (
        "<ChangeMessageVisibilityBatchResultEntry><Id>c</Id>"
        "</ChangeMessageVisibilityBatchResultEntry>"
    )
    deleted = query.result(
        "DeleteMessageBatch",
        QueueUrl=queue,
        DeleteMessageBatchRequestEntry__1__Id="d",
        DeleteMessageBatchRequestEntry__1__ReceiptHandle=handle,
    )
    assert deleted == ("<DeleteMessageBatchResultEntry><Id>d</Id></DeleteMessageBatchResultEntry>")


def test_tags_are_taken_as_sdks_for_java_send_them(query: Query, aws: Aws, queue: str) -> None:
    query.nothing("TagQueue", QueueUrl=queue, Tags__1__Key="team", Tags__1__Value="mail")

    assert aws.client.list_queue_tags(QueueUrl=queue)["Tags"] == {"team": "mail"}


def test_a_queue_is_purged(query: Query, aws: Aws, queue: str) -> None:
    aws.send(queue)

    query.nothing("PurgeQueue", QueueUrl=queue)

    assert aws.counts(queue) == (0, 0, 0)


def test_dead_letters_and_move_tasks(query: Query, aws: Aws, queue: str) -> None:
    policy = f'{{"deadLetterTargetArn":"{arn_of(queue)}","maxReceiveCount":1}}'
    source = aws.make(RedrivePolicy=policy)

    assert query.result("ListDeadLetterSourceQueues", QueueUrl=queue) == (
        f"<QueueUrl>{source}</QueueUrl>"
    )
    started = query.result(
        "StartMessageMoveTask", SourceArn=arn_of(queue), MaxNumberOfMessagesPerSecond=1
    )
    handle = value(started, "TaskHandle")
    assert started == f"<TaskHandle>{handle}</TaskHandle>"
    listed = query.result("ListMessageMoveTasks", SourceArn=arn_of(queue))
    assert re.fullmatch(
        f"<ListMessageMoveTasksResultEntry><TaskHandle>{re.escape(handle)}</TaskHandle>"
        f"<Status>RUNNING</Status><SourceArn>{arn_of(queue)}</SourceArn>"
        "<MaxNumberOfMessagesPerSecond>1</MaxNumberOfMessagesPerSecond>"
        "<ApproximateNumberOfMessagesMoved>0</ApproximateNumberOfMessagesMoved>"
        "<ApproximateNumberOfMessagesToMove>0</ApproximateNumberOfMessagesToMove>"
        "<StartedTimestamp>[0-9]{13}</StartedTimestamp></ListMessageMoveTasksResultEntry>",
        listed,
    ), listed
    assert query.result("CancelMessageMoveTask", TaskHandle=handle) == (
        "<ApproximateNumberOfMessagesMoved>0</ApproximateNumberOfMessagesMoved>"
    )


def test_a_fifo_message_has_its_number(query: Query, line: str) -> None:
    sent = query.result("SendMessage", QueueUrl=line, MessageBody="x", MessageGroupId="g")

    assert sent.endswith(f"<SequenceNumber>{value(sent, 'SequenceNumber')}</SequenceNumber>")
