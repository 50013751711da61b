"""The drafts of an event's messages: one for each subscription, in the form that it wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.domain.bus import envelope
from penstock.domain.bus.endpoint import Endpoint, group_of
from penstock.domain.bus.filter_policy import FilteredEvent
from penstock.domain.bus.subscription import MessageFormat, Subscription
from penstock.domain.bus.topic import EVENT_ID, TOPIC, Topic, TopicSettings
from penstock.domain.delivery import delivery as deliveries
from penstock.domain.message.attribute_types import SUBJECT
from penstock.domain.message.draft import Draft

# AWS's sequence numbers of topics have 20 digits.
_FIRST_SEQUENCE_NUMBER = 10_000_000_000_000_000_000
SIGNATURE_VERSION = "sns.SignatureVersion"  # an annotation of a topic
BASE = "sns.Base"  # an annotation of a subscription over HTTP
PROTOCOL = "sns.Protocol"  # an annotation of a subscription
_text = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder().encode

_JSON_HEADERS = (("content-type", "application/json"),)
_TEXT_HEADERS = (("content-type", "text/plain; charset=UTF-8"),)

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
        if settings.endpoint is not None:
            return self._delivered(subscription, settings.endpoint, arns=arns, now=now)
        if settings.format is MessageFormat.EVENT:
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

    def _delivered(
        self, subscription: Subscription, endpoint: Endpoint, *, arns: Arns, now: int
    ) -> Draft:
        """A request to an endpoint."""
        body = self._body(subscription)
        text = _text.decode(body) if body.startswith('"') else None
        headers: tuple[tuple[str, str], ...] = _JSON_HEADERS
        match subscription.settings.format:
            case MessageFormat.EVENT:
                payload = _encode(
                    {
                        "id": self.id,
                        "type": self.draft.kind,
                        "topic": self.topic.name,
                        "timestamp": envelope.timestamp(now),
                        "data": msgspec.Raw(body.encode()),
                    }
                )
            case MessageFormat.RAW:
                payload = (body if text is None else text).encode()
                if text is not None:
                    headers = _TEXT_HEADERS
            case MessageFormat.SNS:
                found = _addressed(self._envelope(subscription, arns=arns, now=now), subscription)
                payload = envelope.to_text(found).encode()
                headers = envelope.headers(found, arns.of_subscription(*subscription.names))
        delivery = deliveries.Delivery(
            method="POST",
            uri=subscription.path,
            headers=headers,
            payload=payload,
            queued_at=now,
            unique_id=None,
        )
        return msgspec.structs.replace(
            self.draft,
            body=deliveries.to_body(delivery),
            attributes={TOPIC: self.topic.name, EVENT_ID: self.id},
            group=group_of(endpoint, self.draft.group),
            route=subscription.path,
            size=len(payload),
        )

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


def confirmation_of(
    subscription: Subscription, *, arns: Arns, topic: TopicSettings, message_id: str, now: int
) -> Draft:
    """The request that asks an endpoint to confirm its subscription."""
    made = envelope.confirmation(
        message_id=message_id,
        topic_arn=arns.of_topic(subscription.topic),
        token=subscription.settings.token or "",
        version=topic.annotations.get(SIGNATURE_VERSION, "1"),
        now=now,
    )
    found = _addressed(made, subscription)
    delivery = deliveries.Delivery(
        method="POST",
        uri=subscription.path,
        headers=envelope.headers(found, arns.of_subscription(*subscription.names)),
        payload=envelope.to_text(found).encode(),
        queued_at=now,
        unique_id=None,
    )
    return Draft(body=deliveries.to_body(delivery), route=subscription.path)


def _addressed(found: envelope.Envelope, subscription: Subscription) -> envelope.Envelope:
    """With the address of this server that the subscriber's client has used."""
    base = subscription.settings.annotations.get(BASE)
    return found if base is None else envelope.with_base(found, base)


def sequence_number(number: int) -> str:
    return str(_FIRST_SEQUENCE_NUMBER + number)


def _without(attributes: Mapping[str, str] | None, name: str) -> dict[str, str] | None:
    return {key: text for key, text in (attributes or {}).items() if key != name} or None
