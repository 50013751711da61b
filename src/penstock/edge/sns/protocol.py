"""The operations of SNS with their rights, in the Query protocol, the only one that it has."""

from __future__ import annotations

from penstock.domain.access.api_key import Role, Scope
from penstock.edge.aws.flat import Dialect, Names
from penstock.edge.aws.operation import AwsOperation, AwsOutput, Input
from penstock.edge.aws.query_protocol import QueryProtocol
from penstock.edge.server.request import Request
from penstock.edge.sns import wire

_OPERATE = (Role.OPERATE, Scope.NAMED)
_PRODUCE = (Role.PRODUCE, Scope.NAMED)
_ANY = (None, Scope.NAMED)  # a key of any role
_LISTED = (None, Scope.FILTERED)

Right = tuple[Role | None, Scope]

_OPERATIONS: dict[str, tuple[Right, type[Input], type[AwsOutput] | None]] = {
    "AddPermission": (_OPERATE, wire.AddPermissionInput, None),
    "ConfirmSubscription": (_ANY, wire.ConfirmSubscriptionInput, wire.SubscribeResult),
    "CreateTopic": (_OPERATE, wire.CreateTopicInput, wire.CreateTopicResult),
    "DeleteTopic": (_OPERATE, wire.TopicInput, None),
    "GetSubscriptionAttributes": (_ANY, wire.SubscriptionInput, wire.AttributesResult),
    "GetTopicAttributes": (_ANY, wire.TopicInput, wire.AttributesResult),
    "ListSubscriptions": (_LISTED, wire.ListSubscriptionsInput, wire.ListSubscriptionsResult),
    "ListSubscriptionsByTopic": (
        _ANY,
        wire.ListSubscriptionsByTopicInput,
        wire.ListSubscriptionsResult,
    ),
    "ListTagsForResource": (_ANY, wire.ResourceInput, wire.ListTagsForResourceResult),
    "ListTopics": (_LISTED, wire.ListTopicsInput, wire.ListTopicsResult),
    "Publish": (_PRODUCE, wire.PublishInput, wire.PublishResult),
    "PublishBatch": (_PRODUCE, wire.PublishBatchInput, wire.PublishBatchResult),
    "RemovePermission": (_OPERATE, wire.RemovePermissionInput, None),
    "SetSubscriptionAttributes": (_OPERATE, wire.SetSubscriptionAttributesInput, None),
    "SetTopicAttributes": (_OPERATE, wire.SetTopicAttributesInput, None),
    "Subscribe": (_OPERATE, wire.SubscribeInput, wire.SubscribeResult),
    "TagResource": (_OPERATE, wire.TagResourceInput, wire.Empty),
    "Unsubscribe": (_OPERATE, wire.UnsubscribeInput, None),
    "UntagResource": (_OPERATE, wire.UntagResourceInput, wire.Empty),
}
OPERATIONS = {name: AwsOperation(name, *types) for name, types in _OPERATIONS.items()}
RIGHTS: dict[str, Right] = {name: types[0] for name, types in _OPERATIONS.items()}

MAX_BYTES = 256 * 1024  # of a message with its attributes, and of a whole batch


class SnsDialect(Dialect):
    namespace = "http://sns.amazonaws.com/doc/2010-03-31/"

    def names(self, member: str, kind: type, inner: type) -> Names:
        if kind is list:
            return Names((member, "member"))
        is_of_message = member == "MessageAttributes"
        return Names((member, "entry"), *(("Name", "Value") if is_of_message else ("key", "value")))


DIALECT = SnsDialect()


class SnsQueryProtocol(QueryProtocol):
    dialect = DIALECT
    most_bytes = 3 * MAX_BYTES + 320 * 1024  # %41, and an allowance for the rest

    def find(self, action: str, request: Request) -> AwsOperation | None:
        return OPERATIONS.get(action)
