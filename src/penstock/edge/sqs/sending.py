"""SendMessage and SendMessageBatch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.limits import SECOND
from penstock.domain.message.draft import Draft, NewMessage
from penstock.domain.queue.queue import Queue
from penstock.edge.sqs.errors import (
    SqsError,
    from_core,
    invalid_parameter,
    missing_parameter,
    queue_does_not_exist,
)
from penstock.edge.sqs.queue_lookup import Finder
from penstock.edge.sqs.rules import batches, body, content, digests, message_attributes
from penstock.edge.sqs.rules import typed_attributes as typed
from penstock.edge.sqs.rules.body import Body
from penstock.edge.sqs.wire.call import Asked, Promise, Promised
from penstock.edge.sqs.wire.model import (
    BatchResultErrorEntry,
    MessageAttributeValue,
    SendMessageBatchRequestEntry,
    SendMessageBatchResult,
    SendMessageBatchResultEntry,
    SendMessageRequest,
    SendMessageResult,
)
from penstock.ports.store import Sent
from penstock.services.messages import MessageService

_TRACE_ID = b"x-amzn-trace-id"

Entry = SendMessageRequest | SendMessageBatchRequestEntry
Answers = list[Sent | PenstockError]
Attributes = dict[str, MessageAttributeValue]
R = TypeVar("R")


class Sending:
    def __init__(self, messages: MessageService, finder: Finder, *, max_bytes: int) -> None:
        self._messages = messages
        self._finder = finder
        self._max_bytes = min(max_bytes, content.MOST_BYTES)  # other faces may take more

    # --- one ---

    def send(self, asked: Asked) -> Promised:
        queue = self._finder.known(asked)
        if queue is None:
            return self._to_unknown(asked, self._send)
        return self._send(asked, queue)

    def _send(self, asked: Asked, queue: Queue) -> Promise[Answers, SendMessageResult]:
        given: SendMessageRequest = asked.input
        attributes, system = given.MessageAttributes, given.MessageSystemAttributes
        checked, size = _measured(given)
        draft = self._draft(asked, queue, given, checked, size, content.too_large)
        new = self._messages.draft(queue, draft)
        # All but the id is known now, and of the request nothing is kept while the store works.
        result = SendMessageResult(MessageId="", MD5OfMessageBody=digests.of_body(checked.utf8))
        if attributes or system:
            result.MD5OfMessageAttributes = digests.of_attributes(attributes)
            result.MD5OfMessageSystemAttributes = digests.of_attributes(system)
        return Promise(self._messages.send([new]), partial(self._sent, queue, result))

    def _sent(self, queue: Queue, result: SendMessageResult, answers: Answers) -> SendMessageResult:
        answer = answers[0]
        if not isinstance(answer, Sent):
            raise self._refusal(queue, answer)
        result.MessageId = answer.id
        if queue.is_ordered:
            result.SequenceNumber = _sequence(answer)
        return result

    # --- several ---

    def send_batch(self, asked: Asked) -> Promised:
        queue = self._finder.known(asked)
        if queue is None:
            return self._to_unknown(asked, self._send_batch)
        return self._send_batch(asked, queue)

    def _send_batch(self, asked: Asked, queue: Queue) -> Promise[Answers, SendMessageBatchResult]:
        entries = batches.check(asked.input.Entries, SendMessageBatchRequestEntry)
        measured = [_measured_or_error(entry) for entry in entries]
        batches.check_total(sum(found[1] for found in measured if not isinstance(found, SqsError)))
        if queue.is_ordered:
            for entry in entries:
                _check_ordered(queue, entry)
        planned: list[SendMessageBatchResultEntry | BatchResultErrorEntry] = []
        new: list[NewMessage] = []
        for entry, found in zip(entries, measured, strict=True):
            entry_id = entry.Id or ""
            try:
                if isinstance(found, SqsError):
                    raise found
                checked, size = found
                too_large = content.entry_too_large
                draft = self._draft(asked, queue, entry, checked, size, too_large)
                new.append(self._messages.draft(queue, draft))
            except (SqsError, PenstockError) as error:
                planned.append(batches.failed(entry_id, from_core(error)))
                continue
            planned.append(
                SendMessageBatchResultEntry(
                    entry_id,
                    "",
                    digests.of_body(checked.utf8),
                    digests.of_attributes(entry.MessageAttributes),
                    digests.of_attributes(entry.MessageSystemAttributes),
                )
            )
        return Promise(self._messages.send(new), partial(self._all_sent, queue, planned))

    def _all_sent(
        self,
        queue: Queue,
        planned: list[SendMessageBatchResultEntry | BatchResultErrorEntry],
        answers: Answers,
    ) -> SendMessageBatchResult:
        result = SendMessageBatchResult()
        left, is_ordered = iter(answers), queue.is_ordered
        for entry in planned:
            if isinstance(entry, BatchResultErrorEntry):
                result.Failed.append(entry)
                continue
            answer = next(left)
            if not isinstance(answer, Sent):
                result.Failed.append(batches.failed(entry.Id, self._refusal(queue, answer)))
                continue
            entry.MessageId = answer.id
            if is_ordered:
                entry.SequenceNumber = _sequence(answer)
            result.Successful.append(entry)
        return result

    # --- shared ---

    async def _to_unknown(
        self, asked: Asked, send: Callable[[Asked, Queue], Promise[Answers, R]]
    ) -> R:
        """To a queue that was not seen a moment ago."""
        promise = send(asked, await self._finder.queue(asked))
        return promise.finish(await promise.ticket)

    def _draft(
        self,
        asked: Asked,
        queue: Queue,
        given: Entry,
        checked: Body,
        size: int,
        too_large: Callable[[int], SqsError],
    ) -> Draft:
        """Of what passed all checks but those of the core."""
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
        trace = asked.request.headers.get(_TRACE_ID)
        if group is not None:
            content.check_group_id(group)
        delay_ms = None if seconds is None else _delay(seconds, is_ordered)
        if is_ordered or key is not None:
            _check_dedup_key(queue, key)
        return Draft(
            body=checked.json,
            attributes=typed.kept(attributes) if attributes else None,
            group=group,
            delay_ms=delay_ms,
            dedup_key=key,
            trace=None if system is None and trace is None else _trace(system, trace),
            size=size,
        )

    def _refusal(self, queue: Queue, error: PenstockError) -> SqsError:
        if isinstance(error, QueueNotFound):
            self._finder.forget(queue)  # it was removed a moment ago
            return queue_does_not_exist()
        return from_core(error)


def _measured(given: Entry) -> tuple[Body, int]:
    """The body, and the size of the message: attributes count, too."""
    checked = body.read(given.MessageBody)
    size = len(checked.utf8)
    if given.MessageAttributes:
        size += message_attributes.check(given.MessageAttributes)
    return checked, size


def _measured_or_error(entry: SendMessageBatchRequestEntry) -> tuple[Body, int] | SqsError:
    try:
        return _measured(entry)
    except SqsError as error:
        if error.code == "MissingParameter":
            raise  # told for the whole request, as everything that is not there
        return error


def _check_ordered(queue: Queue, entry: SendMessageBatchRequestEntry) -> None:
    """What AWS refuses a whole batch for."""
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
    content.check_deduplication_id(key)


def _delay(seconds: int, is_ordered: bool) -> int | None:
    content.check_delay(seconds)
    if not is_ordered:
        return seconds * SECOND
    if seconds:
        raise content.not_for_this_queue_type(seconds, "DelaySeconds")
    return None  # no delay of its own: the queue's


def _trace(system: Attributes | None, header: bytes | None) -> str | None:
    if system:
        return message_attributes.check_system(system)
    # Something on the way may have put it there: no reason to refuse a message.
    if header is None or len(header) > message_attributes.LONGEST_TRACE:
        return None
    return header.decode("latin-1")


def _sequence(sent: Sent) -> str | None:
    return None if sent.message_no is None else f"{sent.message_no:020d}"
