"""SendMessage and SendMessageBatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from penstock.domain.errors import PenstockError
from penstock.domain.limits import SECOND
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import Queue
from penstock.edge.aws.api import AnyAnswer, PendingAnswer
from penstock.edge.aws.errors import AwsError, invalid_parameter
from penstock.edge.sqs.call import QueueLookup, SqsCall
from penstock.edge.sqs.errors import from_core, missing_parameter
from penstock.edge.sqs.rules import body, content, message_attributes
from penstock.edge.sqs.rules.body import Body
from penstock.edge.sqs.wire.model import (
    MessageAttributeValue,
    SendMessageBatchRequestEntry,
    SendMessageBatchResult,
    SendMessageBatchResultEntry,
    SendMessageRequest,
    SendMessageResult,
)
from penstock.ports.store import Sent
from penstock.ports.unit_of_work import await_steps
from penstock.services.messages import MessageService
from penstock.services.queues import QueueService

_TRACE_ID = b"x-amzn-trace-id"

Entry = SendMessageRequest | SendMessageBatchRequestEntry
Answers = list[Sent | PenstockError]
Attributes = dict[str, MessageAttributeValue]
R = TypeVar("R")


class SendActions:
    def __init__(
        self,
        messages: MessageService,
        queues: QueueService,
        lookup: QueueLookup,
        *,
        max_bytes: int,
    ) -> None:
        self._messages = messages
        self._queues = queues
        self._lookup = lookup
        self._max_bytes = min(max_bytes, content.MAX_BYTES)  # other APIs may allow more

    # --- one ---

    def send(self, call: SqsCall) -> AnyAnswer:
        queue = self._lookup.cached_queue(call)
        if queue is None or _becomes_fair(call, queue, [call.input]):
            return self._send_slowly(call)
        return self._send(call, queue)

    async def _send_slowly(self, call: SqsCall) -> SendMessageResult:
        """Send to a queue that is not cached in the directory, or that becomes a fair queue."""
        queue = await self._lookup.queue(call)
        await self._share_fairly(call, queue, [call.input])
        pending = self._send(call, queue)
        return pending.finish(await pending.ticket)

    async def _share_fairly(self, call: SqsCall, queue: Queue, given: Sequence[Entry]) -> None:
        """With the first MessageGroupId a standard queue becomes a fair queue, as on AWS."""
        if not _becomes_fair(call, queue, given):
            return
        for entry in given:
            if entry.MessageGroupId is not None:
                content.check_id("MessageGroupId", entry.MessageGroupId)
        try:
            await self._queues.share_fairly(queue.name)
        except PenstockError as error:
            raise from_core(error) from None

    def _send(self, call: SqsCall, queue: Queue) -> PendingAnswer[Answers, SendMessageResult]:
        given: SendMessageRequest = call.input
        attributes, system = given.MessageAttributes, given.MessageSystemAttributes
        checked, size = _body_and_size(given)
        draft = self._draft(call, queue, given, checked, size, content.too_large)
        # Compute the digests now, so that the request is not kept while the store works.
        result = SendMessageResult(MessageId="", MD5OfMessageBody=body.md5_of_body(checked.utf8))
        if attributes or system:
            result.MD5OfMessageAttributes = body.md5_of_attributes(attributes)
            result.MD5OfMessageSystemAttributes = body.md5_of_attributes(system)
        return PendingAnswer(
            self._messages.send_to(queue.name, [draft]), partial(self._with_ids, queue, result)
        )

    def _with_ids(
        self, queue: Queue, result: SendMessageResult, answers: Answers
    ) -> SendMessageResult:
        answer = answers[0]
        if not isinstance(answer, Sent):
            raise from_core(self._messages.error_of(queue.name, answer))
        result.MessageId = answer.id
        if queue.is_ordered:
            result.SequenceNumber = _sequence_number(answer)
        return result

    # --- several ---

    async def send_batch(self, call: SqsCall) -> SendMessageBatchResult:
        queue = await self._lookup.queue(call)
        entries = content.check_entries(call.input.Entries, SendMessageBatchRequestEntry)
        measured = [_body_and_size_or_error(entry) for entry in entries]
        content.check_batch_size(
            sum(found[1] for found in measured if not isinstance(found, AwsError))
        )
        if queue.is_ordered:
            for entry in entries:
                _check_ordered(queue, entry)
        result = SendMessageBatchResult()
        accepted: list[tuple[SendMessageBatchRequestEntry, Body]] = []
        drafts: list[Draft] = []
        for entry, found in zip(entries, measured, strict=True):
            try:
                if isinstance(found, AwsError):
                    raise found
                drafts.append(self._draft(call, queue, entry, *found, content.entry_too_large))
                accepted.append((entry, found[0]))
            except AwsError as error:
                result.Failed.append(content.failed(entry.Id or "", error))
        await self._share_fairly(call, queue, [entry for entry, _ in accepted])
        answers = await await_steps(self._messages.send_each(queue.name, drafts))
        for (entry, checked), answer in zip(accepted, answers, strict=True):
            if isinstance(answer, PenstockError):
                result.Failed.append(content.failed(entry.Id or "", from_core(answer)))
            else:
                result.Successful.append(_sent_entry(queue, entry, checked, answer))
        return result

    # --- shared ---

    def _draft(
        self,
        call: SqsCall,
        queue: Queue,
        given: Entry,
        checked: Body,
        size: int,
        too_large: Callable[[int], AwsError],
    ) -> Draft:
        """Check what SQS requires; the core checks the rest."""
        most = queue.settings.max_body_bytes or self._max_bytes
        if size > most or size > self._max_bytes:
            raise too_large(min(most, self._max_bytes))
        group, key, seconds = (
            given.MessageGroupId,
            given.MessageDeduplicationId,
            given.DelaySeconds,
        )
        attributes, system = given.MessageAttributes, given.MessageSystemAttributes
        is_ordered = queue.is_ordered
        if is_ordered and not group:
            raise missing_parameter("MessageGroupId")
        trace = call.request.headers.get(_TRACE_ID)
        if group is not None:
            content.check_id("MessageGroupId", group)
        delay_ms = None if seconds is None else _delay(seconds, is_ordered)
        if is_ordered or key is not None:
            _check_dedup_key(queue, key)
        return Draft(
            body=checked.json,
            attributes=message_attributes.to_stored(attributes) if attributes else None,
            group=group,
            delay_ms=delay_ms,
            dedup_key=key,
            trace=None if system is None and trace is None else _trace(system, trace),
            size=size,
        )


def _becomes_fair(call: SqsCall, queue: Queue, given: Sequence[Entry]) -> bool:
    if queue.is_ordered or queue.settings.is_fair or not call.settings.fair_queues:
        return False
    return any(entry.MessageGroupId is not None for entry in given)


def _body_and_size(given: Entry) -> tuple[Body, int]:
    """The body, and the size of the message including its attributes."""
    checked = body.read(given.MessageBody)
    size = len(checked.utf8)
    if given.MessageAttributes:
        size += message_attributes.check(given.MessageAttributes)
    return checked, size


def _body_and_size_or_error(entry: SendMessageBatchRequestEntry) -> tuple[Body, int] | AwsError:
    try:
        return _body_and_size(entry)
    except AwsError as error:
        if error.code == "MissingParameter":
            raise  # a missing parameter fails the whole batch, as on AWS
        return error


def _check_ordered(queue: Queue, entry: SendMessageBatchRequestEntry) -> None:
    """Checks whose failure rejects the whole batch, as on AWS."""
    if not entry.MessageGroupId:
        raise invalid_parameter("The request must contain the parameter MessageGroupId.")
    if entry.MessageDeduplicationId is None:
        _check_dedup_key(queue, None)


def _check_dedup_key(queue: Queue, key: str | None) -> None:
    if key is None:
        if queue.is_ordered and not queue.settings.dedup_by_content:
            raise content.no_deduplication_id()
        return
    if not queue.is_ordered:
        raise content.not_for_this_queue_type(key, "MessageDeduplicationId")
    content.check_id("MessageDeduplicationId", key)


def _delay(seconds: int, is_ordered: bool) -> int | None:
    content.check_delay(seconds)
    if not is_ordered:
        return seconds * SECOND
    if seconds:
        raise content.not_for_this_queue_type(seconds, "DelaySeconds")
    return None  # use the delay of the queue


def _trace(system: Attributes | None, header: bytes | None) -> str | None:
    if system:
        return message_attributes.check_system(system)
    # A proxy may have added the header: ignore an invalid one.
    if header is None or len(header) > message_attributes.LONGEST_TRACE:
        return None
    return header.decode("latin-1")


def _sent_entry(
    queue: Queue, entry: SendMessageBatchRequestEntry, checked: Body, sent: Sent
) -> SendMessageBatchResultEntry:
    shown = SendMessageBatchResultEntry(
        entry.Id or "",
        sent.id,
        body.md5_of_body(checked.utf8),
        body.md5_of_attributes(entry.MessageAttributes),
        body.md5_of_attributes(entry.MessageSystemAttributes),
    )
    if queue.is_ordered:
        shown.SequenceNumber = _sequence_number(sent)
    return shown


def _sequence_number(sent: Sent) -> str | None:
    return None if sent.message_no is None else content.sequence_number(sent.message_no)
