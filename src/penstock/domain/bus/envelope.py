"""SNS's envelope: the JSON document in which a subscriber gets an event.

It is stored without a signature and with URLs that begin with `/`.  When it goes out, `complete`
adds the address of the server that sends it, and the signature, which covers what SNS signs.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from penstock.domain.message.attribute_types import STRING, SUBJECT, TYPES, types_of
from penstock.domain.message.draft import ENVELOPE_KIND

KIND = ENVELOPE_KIND  # of messages whose body is one
TYPE_HEADER = "x-amz-sns-message-type"  # of a delivery whose payload is an envelope
CERTIFICATE = "SimpleNotificationService.pem"

Sign = Callable[[str, str], str]  # the text and the signature's version


class EnvelopeAttribute(msgspec.Struct, frozen=True, rename="pascal"):
    type: str
    value: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="pascal"):
    """Fields in the order in which SNS sends them."""

    type: str
    message_id: str
    token: str | None = None
    sequence_number: str | None = None
    topic_arn: str
    subject: str | None = None
    message: str
    subscribe_url: str | None = msgspec.field(name="SubscribeURL", default=None)
    timestamp: str
    signature_version: str
    signature: str | None = None
    signing_cert_url: str | None = msgspec.field(name="SigningCertURL", default=None)
    unsubscribe_url: str | None = msgspec.field(name="UnsubscribeURL", default=None)
    message_attributes: dict[str, EnvelopeAttribute] | None = None


NOTIFICATION = "Notification"
CONFIRMATION = "SubscriptionConfirmation"
_SIGNED = {
    NOTIFICATION: ("message", "message_id", "subject", "timestamp", "topic_arn", "type"),
    CONFIRMATION: (
        "message",
        "message_id",
        "subscribe_url",
        "timestamp",
        "token",
        "topic_arn",
        "type",
    ),
}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Envelope).decode
_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(Envelope)}


def notification(
    text: str,
    *,
    event_id: str,
    topic_arn: str,
    subscription_arn: str,
    attributes: Mapping[str, str] | None,
    sequence_number: str | None,
    version: str,
    now: int,
) -> Envelope:
    found = attributes or {}
    return Envelope(
        type=NOTIFICATION,
        message_id=event_id,
        sequence_number=sequence_number,
        topic_arn=topic_arn,
        subject=found.get(SUBJECT),
        message=text,
        timestamp=timestamp(now),
        signature_version=version,
        unsubscribe_url=_unsubscribe_url(subscription_arn),
        message_attributes=_attributes(found) or None,
    )


def confirmation(
    *, message_id: str, topic_arn: str, token: str, version: str, now: int
) -> Envelope:
    return Envelope(
        type=CONFIRMATION,
        message_id=message_id,
        token=token,
        topic_arn=topic_arn,
        message=f"You have chosen to subscribe to the topic {topic_arn}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message.",
        subscribe_url=_url(Action="ConfirmSubscription", TopicArn=topic_arn, Token=token),
        timestamp=timestamp(now),
        signature_version=version,
    )


def headers(envelope: Envelope, subscription_arn: str) -> tuple[tuple[str, str], ...]:
    """Those that SNS sends with an envelope."""
    return (
        ("content-type", "text/plain; charset=UTF-8"),
        ("user-agent", "Amazon Simple Notification Service Agent"),
        (TYPE_HEADER, envelope.type),
        ("x-amz-sns-message-id", envelope.message_id),
        ("x-amz-sns-topic-arn", envelope.topic_arn),
        ("x-amz-sns-subscription-arn", subscription_arn),
    )


def to_text(envelope: Envelope) -> str:
    return _encode(envelope).decode()


def with_base(envelope: Envelope, base: str) -> Envelope:
    """Its URLs with scheme, host and port."""
    subscribe, unsubscribe = envelope.subscribe_url, envelope.unsubscribe_url
    return msgspec.structs.replace(
        envelope,
        subscribe_url=subscribe and base + subscribe,
        unsubscribe_url=unsubscribe and base + unsubscribe,
        signing_cert_url=f"{base}/{CERTIFICATE}",
    )


def complete(text: str, *, base: str, sign: Sign, secret: bytes) -> str:
    """The envelope as it goes out; a text that is not an envelope stays as it is.

    `base`: scheme, host and port of this server as the receiver sees them, unless it has them.
    `secret`: of the store; signs the token that unsubscribes.
    """
    try:
        found = _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text
    if found.signing_cert_url is None:
        found = with_base(found, base)
    signature = sign(text_to_sign(found), found.signature_version)
    unsubscribe = found.unsubscribe_url and _with_token(found.unsubscribe_url, secret)
    return to_text(msgspec.structs.replace(found, signature=signature, unsubscribe_url=unsubscribe))


def unsubscribe_token(subscription_arn: str, secret: bytes) -> str:
    """What an unsigned request must give to end the subscription; ARNs are not secret."""
    return hmac.digest(secret, f"unsubscribe {subscription_arn}".encode(), "sha256").hex()


@lru_cache(maxsize=4_096)
def _with_token(url: str, secret: bytes) -> str:
    [arn] = parse_qs(urlsplit(url).query).get("SubscriptionArn", [""])
    return f"{url}&{urlencode({'Token': unsubscribe_token(arn, secret)})}"


def text_to_sign(envelope: Envelope) -> str:
    """Names and values of the fields that SNS signs, each on a line of its own."""
    signed = ((name, getattr(envelope, name)) for name in _SIGNED.get(envelope.type, ()))
    return "".join(f"{_NAMES[name]}\n{value}\n" for name, value in signed if value is not None)


@lru_cache(maxsize=16)  # the events of a batch have the same instant
def timestamp(now: int) -> str:
    seconds, ms = divmod(now, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03}Z"


@lru_cache(maxsize=4_096)
def _unsubscribe_url(subscription_arn: str) -> str:
    return _url(Action="Unsubscribe", SubscriptionArn=subscription_arn)


def _url(**query: str) -> str:
    return f"/?{urlencode(query)}"


def _attributes(found: Mapping[str, str]) -> dict[str, EnvelopeAttribute]:
    types = types_of(found)
    return {
        name: EnvelopeAttribute(types.get(name, STRING), text)
        for name, text in found.items()
        if name not in (TYPES, SUBJECT)
    }
