"""Inputs and outputs of the operations of SNS, with the names of its service model.

No member is required here: operations report a missing one in SNS's words.  Members without an
effect (`DataProtectionPolicy`) are read and ignored.
"""

from __future__ import annotations

import msgspec

from penstock.edge.aws.operation import AwsOutput, Input
from penstock.edge.sqs.wire.model import MessageAttributeValue


class TopicInput(Input, frozen=True):
    TopicArn: str | None = None


class SubscriptionInput(Input, frozen=True):
    SubscriptionArn: str | None = None


class ResourceInput(Input, frozen=True):
    ResourceArn: str | None = None


class Tag(msgspec.Struct, omit_defaults=True):
    Key: str = ""
    Value: str = ""


class Empty(AwsOutput):
    """Of operations that answer an empty result, which SDKs look for."""


# --- topics ---


class CreateTopicInput(Input, frozen=True):
    Name: str | None = None
    Attributes: dict[str, str] | None = None
    Tags: list[Tag] | None = None
    DataProtectionPolicy: str | None = None


class CreateTopicResult(AwsOutput):
    TopicArn: str


class Topic(AwsOutput):
    TopicArn: str


class ListTopicsInput(Input, frozen=True):
    NextToken: str | None = None


class ListTopicsResult(AwsOutput):
    Topics: list[Topic]
    NextToken: str | None = None


class AttributesResult(AwsOutput):
    Attributes: dict[str, str]


class SetTopicAttributesInput(TopicInput, frozen=True):
    AttributeName: str | None = None
    AttributeValue: str | None = None


class AddPermissionInput(TopicInput, frozen=True):
    Label: str | None = None
    AWSAccountId: list[str] | None = None
    ActionName: list[str] | None = None


class RemovePermissionInput(TopicInput, frozen=True):
    Label: str | None = None


class TagResourceInput(ResourceInput, frozen=True):
    Tags: list[Tag] | None = None


class UntagResourceInput(ResourceInput, frozen=True):
    TagKeys: list[str] | None = None


class ListTagsForResourceResult(AwsOutput):
    Tags: list[Tag]


# --- subscriptions ---


class SubscribeInput(TopicInput, frozen=True):
    Protocol: str | None = None
    Endpoint: str | None = None
    Attributes: dict[str, str] | None = None
    ReturnSubscriptionArn: str | None = None


class SubscribeResult(AwsOutput):
    SubscriptionArn: str


class ConfirmSubscriptionInput(TopicInput, frozen=True):
    Token: str | None = None
    AuthenticateOnUnsubscribe: str | None = None


class UnsubscribeInput(SubscriptionInput, frozen=True):
    Token: str | None = None  # of an UnsubscribeURL; AWS's have none


class SetSubscriptionAttributesInput(SubscriptionInput, frozen=True):
    AttributeName: str | None = None
    AttributeValue: str | None = None


class Subscription(AwsOutput):
    SubscriptionArn: str
    Owner: str
    Protocol: str
    Endpoint: str
    TopicArn: str


class ListSubscriptionsInput(Input, frozen=True):
    NextToken: str | None = None


class ListSubscriptionsByTopicInput(TopicInput, frozen=True):
    NextToken: str | None = None


class ListSubscriptionsResult(AwsOutput):
    Subscriptions: list[Subscription]
    NextToken: str | None = None


# --- publishing ---


class PublishInput(Input, frozen=True):
    TopicArn: str | None = None
    TargetArn: str | None = None
    PhoneNumber: str | None = None
    Message: str | None = None
    Subject: str | None = None
    MessageStructure: str | None = None
    MessageAttributes: dict[str, MessageAttributeValue] | None = None
    MessageDeduplicationId: str | None = None
    MessageGroupId: str | None = None


class PublishResult(AwsOutput):
    MessageId: str
    SequenceNumber: str | None = None


class PublishBatchRequestEntry(msgspec.Struct, frozen=True):
    Id: str | None = None
    Message: str | None = None
    Subject: str | None = None
    MessageStructure: str | None = None
    MessageAttributes: dict[str, MessageAttributeValue] | None = None
    MessageDeduplicationId: str | None = None
    MessageGroupId: str | None = None


class PublishBatchInput(TopicInput, frozen=True):
    PublishBatchRequestEntries: list[PublishBatchRequestEntry] | None = None


class PublishBatchResultEntry(AwsOutput):
    Id: str
    MessageId: str
    SequenceNumber: str | None = None


class BatchResultErrorEntry(AwsOutput):
    Id: str
    Code: str
    Message: str
    SenderFault: bool


class PublishBatchResult(AwsOutput):
    Successful: list[PublishBatchResultEntry]
    Failed: list[BatchResultErrorEntry]
