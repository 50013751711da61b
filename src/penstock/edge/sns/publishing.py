"""Publish and PublishBatch."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from penstock.domain.bus.formats import sequence_number
from penstock.domain.bus.topic import Published
from penstock.domain.message.attribute_types import SUBJECT
from penstock.domain.message.draft import Draft
from penstock.edge.aws.api import PendingAnswer
from penstock.edge.aws.errors import AwsError
from penstock.edge.sns import errors, wire
from penstock.edge.sns.call import SnsCall
from penstock.edge.sns.errors import invalid_parameter
from penstock.edge.sns.protocol import MAX_BYTES
from penstock.edge.sns.topic_attributes import is_fifo
from penstock.edge.sqs.rules import message_attributes
from penstock.services.bus import Bus

MAX_ENTRIES = 10
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_PUNCTUATED = re.compile(r"[!-~]{1,128}")
_SUBJECT = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_encode = msgspec.json.Encoder().encode

Entry = wire.PublishInput | wire.PublishBatchRequestEntry
Texts = dict[str, str]


class PublishActions:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def publish(self, call: SnsCall) -> PendingAnswer[list[Published], wire.PublishResult]:
        given: wire.PublishInput = call.input
        if given.PhoneNumber is not None:
            raise invalid_parameter("PhoneNumber Reason: this server sends no text messages")
        arn = given.TopicArn or given.TargetArn
        if not arn:
            raise errors.missing("TopicArn or TargetArn")
        topic = call.topic(arn)
        draft, texts = _draft(given, topic)
        return PendingAnswer(self._bus.publish(topic, [draft], texts=[texts]), _result)

    async def publish_batch(self, call: SnsCall) -> wire.PublishBatchResult:
        topic = call.topic()
        entries = _check_entries(call.input.PublishBatchRequestEntries)
        result = wire.PublishBatchResult(Successful=[], Failed=[])
        accepted: list[tuple[str, Draft, Texts]] = []
        for entry in entries:
            try:
                accepted.append((entry.Id or "", *_draft(entry, topic)))
            except AwsError as error:
                failed = wire.BatchResultErrorEntry(
                    entry.Id or "", error.code, error.message, error.sender
                )
                result.Failed.append(failed)
        if accepted:
            _, drafts, texts = zip(*accepted, strict=True)
            published = await self._bus.publish(topic, list(drafts), texts=list(texts))
            for (entry_id, _, _), one in zip(accepted, published, strict=True):
                shown = wire.PublishBatchResultEntry(entry_id, one.id, _sequence(one))
                result.Successful.append(shown)
        return result


def _result(published: list[Published]) -> wire.PublishResult:
    return wire.PublishResult(published[0].id, _sequence(published[0]))


def _sequence(published: Published) -> str | None:
    return None if published.sequence is None else sequence_number(published.sequence)


def _check_entries(
    entries: list[wire.PublishBatchRequestEntry] | None,
) -> list[wire.PublishBatchRequestEntry]:
    if not entries:
        raise errors.empty_batch()
    if len(entries) > MAX_ENTRIES:
        raise errors.too_many_entries()
    ids = [entry.Id or "" for entry in entries]
    if not all(map(_ID.fullmatch, ids)):
        raise errors.invalid_entry_id()
    if len(set(ids)) < len(ids):
        raise errors.ids_not_distinct()
    if sum(len((entry.Message or "").encode()) for entry in entries) > MAX_BYTES:
        raise errors.batch_too_long()
    return entries


def _draft(given: Entry, topic: str) -> tuple[Draft, Texts]:
    """The event, and its bodies for single protocols; raises InvalidParameter."""
    text = given.Message
    if not text:
        raise invalid_parameter("Empty message")
    size = len(text.encode())
    attributes: dict[str, str] = {}
    if given.MessageAttributes:
        size += _check_attributes(given)
        attributes = message_attributes.to_stored(given.MessageAttributes)
    if size > MAX_BYTES:
        raise invalid_parameter("Message too long")
    if given.Subject is not None:
        if not _SUBJECT.fullmatch(given.Subject) or given.Subject[0].isspace():
            raise invalid_parameter("Subject")
        attributes[SUBJECT] = given.Subject
    texts: Texts = {}
    if given.MessageStructure:
        texts = _by_protocol(given.MessageStructure, text)
        text = texts.pop("default")
    _check_ids(given, topic)
    return (
        Draft(
            body=_encode(text).decode(),
            attributes=attributes or None,
            group=given.MessageGroupId,
            dedup_key=given.MessageDeduplicationId,
            size=size,
        ),
        texts,
    )


def _check_attributes(given: Entry) -> int:
    try:
        # Only raw deliveries to queues are limited in number.
        return sum(
            message_attributes.check_one(name, value)
            for name, value in (given.MessageAttributes or {}).items()
        )
    except AwsError as error:
        raise errors.invalid_value(error.message) from None


def _by_protocol(structure: str, text: str) -> Texts:
    if structure != "json":
        raise invalid_parameter("MessageStructure")
    start = "Message Structure -"
    try:
        given: Mapping[str, object] = msgspec.json.decode(text, type=dict)
    except (msgspec.DecodeError, RecursionError):
        raise invalid_parameter(f"{start} JSON message body failed to parse") from None
    texts = {name: one for name, one in given.items() if isinstance(one, str)}
    if "default" not in texts:
        raise invalid_parameter(f"{start} No default entry in JSON message body")
    return texts


def _check_ids(given: Entry, topic: str) -> None:
    for name in ("MessageGroupId", "MessageDeduplicationId"):
        value = getattr(given, name)
        if value is not None and not _PUNCTUATED.fullmatch(value):
            raise invalid_parameter(
                f"The {name} can only include alphanumeric and punctuation characters. 1 to 128 in "
                "length"
            )
    if given.MessageDeduplicationId is not None and not is_fifo(topic):
        raise invalid_parameter(
            "MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter "
            "that is not valid for this topic type"
        )
