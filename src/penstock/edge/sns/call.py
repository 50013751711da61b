"""A call of an operation: its input, its caller, and the topic or subscription that it names."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Caller, Role
from penstock.domain.bus.formats import Arns
from penstock.edge.sns.errors import invalid_parameter, missing, not_found, sns_error

_ARN = re.compile(
    r"arn:aws[a-z-]*:sns:([a-z0-9-]+):([0-9]{12}):([A-Za-z0-9_.-]{1,256})(?::([A-Za-z0-9_.-]{1,256}))?"
)
_ANY = frozenset(Role)
MAX_TOPIC_CHARS = 78

# Who opens a URL of an envelope: the token in it is the secret.
OPENER = Caller("the URL of an envelope", frozenset(Role))
OPENABLE = frozenset({"ConfirmSubscription", "Unsubscribe"})


class SnsCall(msgspec.Struct, frozen=True):
    input: Any
    caller: Caller
    role: Role | None  # that the operation requires; None: any
    arns: Arns
    base: str  # the address of this server as the client sees it

    def topic(self, arn: str | None = None, *, name: str = "TopicArn") -> str:
        """The name in the topic's ARN; raises InvalidParameter, NotFound or AuthorizationError."""
        given = arn or getattr(self.input, name, None)
        if not given:
            raise missing(name)
        topic, subscription = self._read(given, name)
        if subscription is not None:
            raise invalid_parameter(f"{name} Reason: An ARN must have at least 6 elements, not 7")
        self.allow(topic)
        return topic

    def subscription(self) -> tuple[str, str]:
        """The names in the subscription's ARN."""
        given = self.input.SubscriptionArn
        if not given:
            raise missing("SubscriptionArn")
        topic, subscription = self._read(given, "SubscriptionArn")
        if subscription is None:
            raise invalid_parameter(
                "SubscriptionArn Reason: An ARN must have at least 7 elements, not 6"
            )
        self.allow(topic)
        return topic, subscription

    def allow(self, topic: str) -> None:
        if self.role is not None:
            access.allow(self.caller, self.role, topic)
        elif not self.caller.roles & _ANY or not access.sees(self.caller, topic):
            raise sns_error(
                "AuthorizationError", f"this key is not for topic {topic!r}", status=403
            )

    def _read(self, arn: str, name: str) -> tuple[str, str | None]:
        found = _ARN.fullmatch(arn)
        if found is None:
            raise invalid_parameter(f"{name} Reason: {arn[:100]} is not the ARN of SNS")
        _, account, topic, subscription = found.groups()
        if account != self.arns.account or len(topic) > MAX_TOPIC_CHARS:
            raise not_found("Topic" if subscription is None else "Subscription")
        return topic, subscription
