"""How SQS names lists and maps in the Query protocol."""

from __future__ import annotations

from penstock.edge.aws.flat import Dialect, Names, is_struct

_NAMES = {
    "AWSAccountIds": Names(("AWSAccountId",)),
    "Actions": Names(("ActionName",)),
    "AttributeNames": Names(("AttributeName",)),
    "Attributes": Names(("Attribute",)),
    "BinaryListValues": Names(("BinaryListValue",)),
    "MessageAttributeNames": Names(("MessageAttributeName",)),
    "MessageAttributes": Names(("MessageAttribute",)),
    "MessageSystemAttributeNames": Names(("MessageSystemAttributeName",)),
    "MessageSystemAttributes": Names(("MessageSystemAttribute",)),
    "QueueUrls": Names(("QueueUrl",)),
    "StringListValues": Names(("StringListValue",)),
    "TagKeys": Names(("TagKey",)),
    "Tags": Names(("Tag",), "Key"),
    "tags": Names(("Tag",), "Key"),
}
_RENAMED = {"Messages": "messages", "QueueUrls": "queueUrls"}
_ALIASES = {"Tags": "Tags"}  # the Java SDKs send this name for TagQueue


class SqsDialect(Dialect):
    namespace = "http://queue.amazonaws.com/doc/2012-11-05/"

    def names(self, member: str, kind: type, inner: type) -> Names:
        # A list of structures is named after its structure.
        is_of_structs = kind is list and is_struct(inner)
        return Names((inner.__name__,)) if is_of_structs else _NAMES[member]

    def json_name(self, member: str) -> str:
        return _RENAMED.get(member, member)

    def other_name(self, member: str) -> str:
        return _ALIASES.get(member, "")


DIALECT = SqsDialect()
