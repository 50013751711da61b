"""The drafts of an event's messages: one for each subscription, in the form that it wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.domain.bus import envelope
from penstock.domain.bus.filter_policy import FilteredEvent
from penstock.domain.bus.subscription import DEFAULTS, MessageFormat, Subscription
from penstock.domain.bus.topic import EVENT_ID, TOPIC, Topic
from penstock.domain.message.attribute_types import SUBJECT
from penstock.domain.message.draft import Draft

# AWS's sequence numbers of topics have 20 digits.
_FIRST_SEQUENCE_NUMBER = 10_000_000_000_000_000_000
SIGNATURE_VERSION = "sns.SignatureVersion"  # an annotation of a topic
PROTOCOL = "sns.Protocol"  # an annotation of a subscription
_text = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder().encode

Texts = Mapping[str, str]  # by protocol


class Arns(msgspec.Struct, frozen=True):
    region: str
    account: str

    def of_topic(self, topic: str) -> str:
        return f"arn:aws:sns:{self.region}:{self.account}:{topic}"

    def of_subscription(self, topic: str, name: str) -> str:
        return f"{self.of_topic(topic)}:{name}"


class PublishedEvent:
    """An event on its way to the subscriptions of its topic."""

    __slots__ = ("_as_event", "_filtered", "draft", "id", "sequence", "texts", "topic")

    def __init__(self, draft: Draft, *, event_id: str, topic: Topic, texts: Texts) -> None:
        """`texts`: bodies for subscriptions of single protocols, in place of the draft's."""
        self.draft = draft
        self.id = event_id
        self.topic = topic
        self.texts = texts
        self.sequence: int | None = None  # in an ordered topic
        self._filtered: dict[str, FilteredEvent] = {}
        self._as_event: Draft | None = None

    def filtered(self, subscription: Subscription) -> FilteredEvent | None:
        """What the subscription's filter looks at, if it has one."""
        if subscription.settings.filter is None:
            return None
        body = self._body(subscription)
        found = self._filtered.get(body)
        if found is None:
            found = self._filtered[body] = FilteredEvent(body, self.draft.attributes)
        return found

    def draft_for(self, subscription: Subscription, *, arns: Arns, now: int) -> Draft:
        settings = subscription.settings
        if settings is DEFAULTS or settings.format is MessageFormat.EVENT:
            return self._event(subscription)
        if settings.format is MessageFormat.RAW:
            return self._with(subscription, attributes=_without(self.draft.attributes, SUBJECT))
        text = envelope.to_text(self._envelope(subscription, arns=arns, now=now))
        return self._with(subscription, body=text, attributes=None, kind=envelope.KIND)

    def _event(self, subscription: Subscription) -> Draft:
        """With the topic and the event's id as attributes."""
        if not self.texts and self._as_event is not None:
            return self._as_event
        own = {TOPIC: self.topic.name, EVENT_ID: self.id}
        made = self._with(subscription, attributes={**(self.draft.attributes or {}), **own})
        self._as_event = made
        return made

    def _with(self, subscription: Subscription, **changes: Any) -> Draft:
        changes.setdefault("body", self._body(subscription))
        return msgspec.structs.replace(self.draft, **changes)

    def _body(self, subscription: Subscription) -> str:
        if not self.texts:
            return self.draft.body
        text = self.texts.get(subscription.settings.annotations.get(PROTOCOL, ""))
        return self.draft.body if text is None else _encode(text).decode()

    def _envelope(self, subscription: Subscription, *, arns: Arns, now: int) -> envelope.Envelope:
        body = self._body(subscription)
        return envelope.notification(
            _text.decode(body) if body.startswith('"') else body,
            event_id=self.id,
            topic_arn=arns.of_topic(self.topic.name),
            subscription_arn=arns.of_subscription(self.topic.name, subscription.name),
            attributes=self.draft.attributes,
            sequence_number=None if self.sequence is None else sequence_number(self.sequence),
            version=self.topic.settings.annotations.get(SIGNATURE_VERSION, "1"),
            now=now,
        )


def sequence_number(number: int) -> str:
    return str(_FIRST_SEQUENCE_NUMBER + number)


def _without(attributes: Mapping[str, str] | None, name: str) -> dict[str, str] | None:
    return {key: text for key, text in (attributes or {}).items() if key != name} or None
