"""Inputs and outputs of the 23 operations: the service model as types.

Classes, members and their order are those of the service model; XML is written in that order.
No member is required here, because an unknown queue is reported before a missing member.  Unknown
members are ignored and `null` counts as absent; absent or empty results are left out.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, field

from penstock.edge.aws.operation import AwsOutput, Input


class QueueInput(Input, frozen=True):
    """Input of an operation on one queue; in the Query protocol the path may name it."""

    QueueUrl: str | None = None


# --- shared ---


class MessageAttributeValue(msgspec.Struct, frozen=True, omit_defaults=True):
    StringValue: str | None = None
    BinaryValue: bytes | None = None
    StringListValues: list[str] | None = None
    BinaryListValues: list[bytes] | None = None
    DataType: str | None = None


class BatchResultErrorEntry(msgspec.Struct, omit_defaults=True):
    Id: str
    SenderFault: bool
    Code: str
    Message: str | None = None


# --- queues ---


class CreateQueueRequest(Input, frozen=True):
    QueueName: str | None = None
    Attributes: dict[str, str] | None = None
    tags: dict[str, str] | None = None


class CreateQueueResult(AwsOutput):
    QueueUrl: str


class GetQueueUrlRequest(Input, frozen=True):
    QueueName: str | None = None
    QueueOwnerAWSAccountId: str | None = None


class GetQueueUrlResult(AwsOutput):
    QueueUrl: str


class ListQueuesRequest(Input, frozen=True):
    QueueNamePrefix: str | None = None
    NextToken: str | None = None
    MaxResults: int | None = None


class ListQueuesResult(AwsOutput):
    QueueUrls: list[str] = field(default_factory=list)
    NextToken: str | None = None


class DeleteQueueRequest(QueueInput, frozen=True):
    pass


class PurgeQueueRequest(QueueInput, frozen=True):
    pass


class GetQueueAttributesRequest(QueueInput, frozen=True):
    AttributeNames: list[str] | None = None


class GetQueueAttributesResult(AwsOutput):
    Attributes: dict[str, str] = field(default_factory=dict)


class SetQueueAttributesRequest(QueueInput, frozen=True):
    Attributes: dict[str, str] | None = None


class ListDeadLetterSourceQueuesRequest(QueueInput, frozen=True):
    NextToken: str | None = None
    MaxResults: int | None = None


class ListDeadLetterSourceQueuesResult(AwsOutput):
    QueueUrls: list[str] = field(name="queueUrls")
    NextToken: str | None = None


# --- tags and permissions ---


class TagQueueRequest(QueueInput, frozen=True):
    Tags: dict[str, str] | None = None


class UntagQueueRequest(QueueInput, frozen=True):
    TagKeys: list[str] | None = None


class ListQueueTagsRequest(QueueInput, frozen=True):
    pass


class ListQueueTagsResult(AwsOutput):
    Tags: dict[str, str] = field(default_factory=dict)


class AddPermissionRequest(QueueInput, frozen=True):
    Label: str | None = None
    AWSAccountIds: list[str] | None = None
    Actions: list[str] | None = None


class RemovePermissionRequest(QueueInput, frozen=True):
    Label: str | None = None


# --- send ---


class SendMessageRequest(QueueInput, frozen=True):
    MessageBody: Raw = Raw()  # see body.py
    DelaySeconds: int | None = None
    MessageAttributes: dict[str, MessageAttributeValue] | None = None
    MessageSystemAttributes: dict[str, MessageAttributeValue] | None = None
    MessageDeduplicationId: str | None = None
    MessageGroupId: str | None = None


class SendMessageResult(AwsOutput, kw_only=True):
    MD5OfMessageBody: str
    MD5OfMessageAttributes: str | None = None
    MD5OfMessageSystemAttributes: str | None = None
    MessageId: str
    SequenceNumber: str | None = None


class SendMessageBatchRequestEntry(msgspec.Struct, frozen=True):
    Id: str | None = None
    MessageBody: Raw = Raw()
    DelaySeconds: int | None = None
    MessageAttributes: dict[str, MessageAttributeValue] | None = None
    MessageSystemAttributes: dict[str, MessageAttributeValue] | None = None
    MessageDeduplicationId: str | None = None
    MessageGroupId: str | None = None


class SendMessageBatchRequest(QueueInput, frozen=True):
    Entries: list[SendMessageBatchRequestEntry] | None = None


class SendMessageBatchResultEntry(msgspec.Struct, omit_defaults=True):
    Id: str
    MessageId: str
    MD5OfMessageBody: str
    MD5OfMessageAttributes: str | None = None
    MD5OfMessageSystemAttributes: str | None = None
    SequenceNumber: str | None = None


class SendMessageBatchResult(AwsOutput):
    Successful: list[SendMessageBatchResultEntry] = field(default_factory=list)
    Failed: list[BatchResultErrorEntry] = field(default_factory=list)


# --- receive ---


class ReceiveMessageRequest(QueueInput, frozen=True):
    AttributeNames: list[str] | None = None
    MessageSystemAttributeNames: list[str] | None = None
    MessageAttributeNames: list[str] | None = None
    MaxNumberOfMessages: int | None = None
    VisibilityTimeout: int | None = None
    WaitTimeSeconds: int | None = None
    ReceiveRequestAttemptId: str | None = None


class Message(msgspec.Struct, omit_defaults=True):
    MessageId: str
    ReceiptHandle: str
    MD5OfBody: str
    Body: Raw  # a JSON string, returned as it is stored
    Attributes: dict[str, str] = field(default_factory=dict)
    MD5OfMessageAttributes: str | None = None
    MessageAttributes: dict[str, MessageAttributeValue] = field(default_factory=dict)


class ReceiveMessageResult(AwsOutput):
    Messages: list[Message] = field(default_factory=list)


# --- delete, change visibility ---


class DeleteMessageRequest(QueueInput, frozen=True):
    ReceiptHandle: str | None = None


class DeleteMessageBatchRequestEntry(msgspec.Struct, frozen=True):
    Id: str | None = None
    ReceiptHandle: str | None = None


class DeleteMessageBatchRequest(QueueInput, frozen=True):
    Entries: list[DeleteMessageBatchRequestEntry] | None = None


class DeleteMessageBatchResultEntry(msgspec.Struct):
    Id: str


class DeleteMessageBatchResult(AwsOutput):
    Successful: list[DeleteMessageBatchResultEntry] = field(default_factory=list)
    Failed: list[BatchResultErrorEntry] = field(default_factory=list)


class ChangeMessageVisibilityRequest(QueueInput, frozen=True):
    ReceiptHandle: str | None = None
    VisibilityTimeout: int | None = None


class ChangeMessageVisibilityBatchRequestEntry(msgspec.Struct, frozen=True):
    Id: str | None = None
    ReceiptHandle: str | None = None
    VisibilityTimeout: int | None = None


class ChangeMessageVisibilityBatchRequest(QueueInput, frozen=True):
    Entries: list[ChangeMessageVisibilityBatchRequestEntry] | None = None


class ChangeMessageVisibilityBatchResultEntry(msgspec.Struct):
    Id: str


class ChangeMessageVisibilityBatchResult(AwsOutput):
    Successful: list[ChangeMessageVisibilityBatchResultEntry] = field(default_factory=list)
    Failed: list[BatchResultErrorEntry] = field(default_factory=list)


# --- message move tasks ---


class StartMessageMoveTaskRequest(Input, frozen=True):
    SourceArn: str | None = None
    DestinationArn: str | None = None
    MaxNumberOfMessagesPerSecond: int | None = None


class StartMessageMoveTaskResult(AwsOutput):
    TaskHandle: str


class ListMessageMoveTasksRequest(Input, frozen=True):
    SourceArn: str | None = None
    MaxResults: int | None = None


class ListMessageMoveTasksResultEntry(msgspec.Struct, omit_defaults=True):
    TaskHandle: str | None = None
    Status: str | None = None
    SourceArn: str | None = None
    DestinationArn: str | None = None
    MaxNumberOfMessagesPerSecond: int | None = None
    ApproximateNumberOfMessagesMoved: int | None = None
    ApproximateNumberOfMessagesToMove: int | None = None
    FailureReason: str | None = None
    StartedTimestamp: int | None = None  # milliseconds since the epoch


class ListMessageMoveTasksResult(AwsOutput):
    Results: list[ListMessageMoveTasksResultEntry] = field(default_factory=list)


class CancelMessageMoveTaskRequest(Input, frozen=True):
    TaskHandle: str | None = None


class CancelMessageMoveTaskResult(AwsOutput):
    ApproximateNumberOfMessagesMoved: int
