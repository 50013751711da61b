"""SendMessage and SendMessageBatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from penstock.domain.access import Role
from penstock.domain.draft import Draft, NewMessage
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.limits import SECOND
from penstock.domain.queue import Queue
from penstock.edge.sqs import batches, body, content, digests, message_attributes, typed
from penstock.edge.sqs.asked import Asked, Promise, Promised
from penstock.edge.sqs.body import Body
from penstock.edge.sqs.errors import (
    SqsError,
    from_core,
    invalid_parameter,
    missing_parameter,
    queue_does_not_exist,
)
from penstock.edge.sqs.finding import Finder
from penstock.edge.sqs.model import (
    MessageAttributeValue,
    SendMessageBatchRequestEntry,
    SendMessageBatchResult,
    SendMessageBatchResultEntry,
    SendMessageRequest,
    SendMessageResult,
)
from penstock.ports.store import Sent
from penstock.services.messages import Messages

_TRACE_ID = b"x-amzn-trace-id"

Entry = SendMessageRequest | SendMessageBatchRequestEntry
Answers = list[Sent | PenstockError]
R = TypeVar("R")


class Draftable(msgspec.Struct, frozen=True, gc=False):
    """One message that passed all checks but those of the core."""

    draft: Draft
    body_digest: str
    attribute_digest: str | None
    system_digest: str | None


class Sending:
    def __init__(self, messages: Messages, finder: Finder, *, max_bytes: int) -> None:
        self._messages = messages
        self._finder = finder
        self._max_bytes = min(max_bytes, content.MOST_BYTES)  # other faces may take more

    # --- one ---

    def send(self, asked: Asked) -> Promised:
        queue = self._finder.known(asked, Role.PRODUCE)
        if queue is None:
            return self._to_unknown(asked, self._send)
        return self._send(asked, queue)

    def _send(self, asked: Asked, queue: Queue) -> Promise[Answers, SendMessageResult]:
        given: SendMessageRequest = asked.input
        checked, size = _measured(given)
        content.check_size(size, most=self._most(queue))
        if queue.is_ordered and not given.MessageGroupId:
            raise missing_parameter("MessageGroupId")
        wanted = self._draftable(asked, queue, given, checked, size)
        new = self._messages.draft(queue, wanted.draft)
        return Promise(
            self._messages.send([new]), lambda answers: self._sent(queue, wanted, answers[0])
        )

    def _sent(
        self, queue: Queue, wanted: Draftable, answer: Sent | PenstockError
    ) -> SendMessageResult:
        if not isinstance(answer, Sent):
            raise self._refusal(queue, answer)
        return SendMessageResult(
            MessageId=answer.id,
            MD5OfMessageBody=wanted.body_digest,
            MD5OfMessageAttributes=wanted.attribute_digest,
            MD5OfMessageSystemAttributes=wanted.system_digest,
            SequenceNumber=_sequence(queue, answer),
        )

    # --- several ---

    def send_batch(self, asked: Asked) -> Promised:
        queue = self._finder.known(asked, Role.PRODUCE)
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
        planned: list[tuple[SendMessageBatchRequestEntry, Draftable | SqsError]] = []
        new: list[NewMessage] = []
        for entry, found in zip(entries, measured, strict=True):
            try:
                if isinstance(found, SqsError):
                    raise found
                checked, size = found
                content.check_entry_size(size, most=self._most(queue))
                wanted = self._draftable(asked, queue, entry, checked, size)
                new.append(self._messages.draft(queue, wanted.draft))
                planned.append((entry, wanted))
            except (SqsError, PenstockError) as error:
                planned.append((entry, from_core(error)))
        return Promise(
            self._messages.send(new), lambda answers: self._all_sent(queue, planned, answers)
        )

    def _all_sent(
        self,
        queue: Queue,
        planned: list[tuple[SendMessageBatchRequestEntry, Draftable | SqsError]],
        answers: Answers,
    ) -> SendMessageBatchResult:
        result = SendMessageBatchResult()
        left = iter(answers)
        for entry, wanted in planned:
            entry_id = entry.Id or ""
            if isinstance(wanted, SqsError):
                result.Failed.append(batches.failed(entry_id, wanted))
                continue
            answer = next(left)
            if not isinstance(answer, Sent):
                result.Failed.append(batches.failed(entry_id, self._refusal(queue, answer)))
                continue
            result.Successful.append(
                SendMessageBatchResultEntry(
                    entry_id,
                    answer.id,
                    wanted.body_digest,
                    wanted.attribute_digest,
                    wanted.system_digest,
                    _sequence(queue, answer),
                )
            )
        return result

    # --- shared ---

    async def _to_unknown(
        self, asked: Asked, send: Callable[[Asked, Queue], Promise[Answers, R]]
    ) -> R:
        """To a queue that was not seen a moment ago."""
        promise = send(asked, await self._finder.queue(asked, Role.PRODUCE))
        return promise.finish(await promise.ticket)

    def _draftable(
        self, asked: Asked, queue: Queue, given: Entry, checked: Body, size: int
    ) -> Draftable:
        trace, system_digest = _trace(asked, given)
        draft = Draft(
            body=checked.json,
            attributes=typed.kept(given.MessageAttributes) if given.MessageAttributes else None,
            group=_group(given),
            delay_ms=_delay(queue, given),
            dedup_key=_dedup_key(queue, given),
            trace=trace,
            size=size,
        )
        return Draftable(
            draft,
            digests.of_body(checked.utf8),
            digests.of_attributes(given.MessageAttributes),
            system_digest,
        )

    def _most(self, queue: Queue) -> int:
        return min(queue.settings.max_body_bytes or self._max_bytes, self._max_bytes)

    def _refusal(self, queue: Queue, error: PenstockError) -> SqsError:
        if isinstance(error, QueueNotFound):
            self._finder.forget(queue)  # it was removed a moment ago
            return queue_does_not_exist()
        return from_core(error)


def _measured(given: Entry) -> tuple[Body, int]:
    """The body, and the size of the message: attributes count, too."""
    checked = body.read(given.MessageBody)
    if not given.MessageAttributes:
        return checked, checked.size
    return checked, checked.size + message_attributes.check(given.MessageAttributes)


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
    _dedup_key(queue, entry)


def _group(given: Entry) -> str | None:
    if given.MessageGroupId is not None:
        content.check_group_id(given.MessageGroupId)
    return given.MessageGroupId


def _dedup_key(queue: Queue, given: Entry) -> str | None:
    key = given.MessageDeduplicationId
    if key is None:
        if queue.is_ordered and not queue.settings.dedup_by_content:
            raise content.no_deduplication_id()
        return None
    if not queue.is_ordered:
        raise content.not_for_this_queue_type(key, "MessageDeduplicationId")
    content.check_deduplication_id(key)
    return key


def _delay(queue: Queue, given: Entry) -> int | None:
    seconds = given.DelaySeconds
    if seconds is None:
        return None
    content.check_delay(seconds)
    if not queue.is_ordered:
        return seconds * SECOND
    if seconds:
        raise content.not_for_this_queue_type(seconds, "DelaySeconds")
    return None  # no delay of its own: the queue's


def _trace(asked: Asked, given: Entry) -> tuple[str | None, str | None]:
    system: dict[str, MessageAttributeValue] | None = given.MessageSystemAttributes
    if system:
        return message_attributes.check_system(system), digests.of_attributes(system)
    header = asked.request.headers.get(_TRACE_ID)
    # Something on the way may have put it there: no reason to refuse a message.
    if header is None or len(header) > message_attributes.LONGEST_TRACE:
        return None, None
    return header.decode("latin-1"), None


def _sequence(queue: Queue, sent: Sent) -> str | None:
    if not queue.is_ordered or sent.message_no is None:
        return None
    return f"{sent.message_no:020d}"
