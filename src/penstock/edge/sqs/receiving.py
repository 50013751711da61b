"""ReceiveMessage."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from penstock.domain.errors import ClaimNotRepeatable
from penstock.domain.limits import SECOND
from penstock.domain.message.lifecycle import Content
from penstock.domain.message.lifecycle import Message as Claimable
from penstock.domain.queue.queue import Queue
from penstock.edge.server.errors import unexpected
from penstock.edge.sqs.errors import SqsError, invalid_value, over_limit
from penstock.edge.sqs.queue_lookup import Finder
from penstock.edge.sqs.rules import body, content, digests
from penstock.edge.sqs.rules import typed_attributes as typed
from penstock.edge.sqs.wire.call import Asked, Promise, Promised
from penstock.edge.sqs.wire.model import Message, ReceiveMessageRequest, ReceiveMessageResult
from penstock.edge.waiting_claims import WaitingRoom
from penstock.ports.store import Claimed
from penstock.services.messages import Messages
from penstock.services.queues import Queues

MOST_IN_FLIGHT = 120_000  # as on AWS, when limits are strict
_NOTHING: frozenset[str] = frozenset()


class Receiving:
    def __init__(
        self,
        messages: Messages,
        queues: Queues,
        finder: Finder,
        room: WaitingRoom,
        *,
        max_wait_ms: int,
    ) -> None:
        self._messages = messages
        self._queues = queues
        self._finder = finder
        self._room = room
        self._max_wait_ms = max_wait_ms

    def receive(self, asked: Asked) -> Promised:
        queue = self._finder.known(asked)
        given: ReceiveMessageRequest = asked.input
        if queue is None or _is_special(asked, queue):
            return self._receive_slowly(asked)
        _check(queue, given)
        ticket = self._messages.claim(
            queue,
            limit=_limit(given),
            lease_ms=_lease_ms(given),
            in_a_row=queue.is_ordered,
        )
        return Promise(
            ticket,
            lambda claimed: self._received(asked, queue, claimed),
            partial(self._messages.error_of, queue.name),
        )

    async def _receive_slowly(self, asked: Asked) -> ReceiveMessageResult:
        given: ReceiveMessageRequest = asked.input
        queue = await self._finder.queue(asked)
        _check(queue, given)
        wait_ms = _wait_ms(queue, given)
        if asked.settings.limits == "strict" and await self._is_full(queue):
            if wait_ms:
                return ReceiveMessageResult()
            raise over_limit(f"More than {MOST_IN_FLIGHT} messages would be in flight.")
        try:
            claimed = await self._room.claim(
                queue,
                limit=_limit(given),
                wait_ms=min(wait_ms, self._max_wait_ms),
                lease_ms=_lease_ms(given),
                claimed_by=None,
                in_a_row=queue.is_ordered,
                claim_key=given.ReceiveRequestAttemptId,
            )
        except ClaimNotRepeatable:
            raise _not_repeatable(given) from None
        return await self._received_from_everywhere(asked, queue, claimed)

    async def _is_full(self, queue: Queue) -> bool:
        """Are as many in flight as may be, also without those whose timeout is over?"""
        if (await self._queues.get(queue.name)).counts.leased < MOST_IN_FLIGHT:
            return False
        await self._queues.bring_back_some(queue.name)
        return (await self._queues.get(queue.name)).counts.leased >= MOST_IN_FLIGHT

    def _received(
        self, asked: Asked, queue: Queue, claimed: Claimed
    ) -> ReceiveMessageResult | Awaitable[ReceiveMessageResult]:
        for message, _ in claimed.messages:
            home = message.dead_from
            if home is not None and self._finder.known_name(home) is None:
                return self._received_from_everywhere(asked, queue, claimed)
        return self._result(asked, queue, claimed)

    async def _received_from_everywhere(
        self, asked: Asked, queue: Queue, claimed: Claimed
    ) -> ReceiveMessageResult:
        """Dead letters tell which queue they died in, and its name may have to be looked up."""
        for message, _ in claimed.messages:
            if message.dead_from is not None:
                await self._finder.name_of(message.dead_from)
        return self._result(asked, queue, claimed)

    def _result(self, asked: Asked, queue: Queue, claimed: Claimed) -> ReceiveMessageResult:
        given: ReceiveMessageRequest = asked.input
        names = given.MessageSystemAttributeNames
        if names is None:
            names = given.AttributeNames
        wanted = frozenset(names) if names else _NOTHING
        shown: list[Message] = []
        left_out: list[Claimable] = []
        for message, sent in claimed.messages:
            if left_out and queue.is_ordered and _is_behind(message, left_out):
                left_out.append(message)
                continue
            try:
                shown.append(self._shown(asked, queue, message, sent, wanted))
            except Exception as error:  # a mistake of ours must not cost its neighbours
                unexpected(error)
                left_out.append(message)
        if left_out:
            self._give_back(left_out)
        return ReceiveMessageResult(shown)

    def _give_back(self, left_out: list[Claimable]) -> None:
        """Those that wait behind one that cannot be shown.

        That one keeps its lease: given back, it would be the first to be claimed again, for ever;
        this way it dies when its receives are used up.
        """
        behind = [m for n, m in enumerate(left_out) if _is_behind(m, left_out[:n])]
        if behind:
            self._messages.release(behind)

    def _shown(
        self,
        asked: Asked,
        queue: Queue,
        message: Claimable,
        sent: Content,
        wanted: frozenset[str],
    ) -> Message:
        shown = body.shown(sent.body)
        out = Message(
            message.id,
            self._messages.receipt(message),
            digests.of_body(shown.utf8),
            body.as_raw(shown),
        )
        if wanted:
            known = self._system_attributes(asked, queue, message, sent)
            out.Attributes = {
                name: text
                for name, text in known.items()
                if text is not None and ("All" in wanted or name in wanted)
            }
        if sent.attributes and asked.input.MessageAttributeNames:
            out.MessageAttributes = typed.shown(sent.attributes, asked.input.MessageAttributeNames)
            out.MD5OfMessageAttributes = digests.of_attributes(out.MessageAttributes)
        return out

    def _system_attributes(
        self, asked: Asked, queue: Queue, message: Claimable, sent: Content
    ) -> dict[str, str | None]:
        home = None if message.dead_from is None else self._finder.known_name(message.dead_from)
        return {
            "SenderId": asked.settings.account,
            "SentTimestamp": str(message.sent_at),
            "ApproximateReceiveCount": str(_receives(message)),
            "ApproximateFirstReceiveTimestamp": str(message.first_leased_at),
            "AWSTraceHeader": sent.trace,
            "DeadLetterQueueSourceArn": None if home is None else asked.arn(home),
            "MessageGroupId": message.group,
            "MessageDeduplicationId": message.dedup_key if queue.is_ordered else None,
            "SequenceNumber": f"{message.message_no:020d}" if queue.is_ordered else None,
        }


def _is_behind(message: Claimable, others: list[Claimable]) -> bool:
    return message.group is not None and any(message.group == other.group for other in others)


def _receives(message: Claimable) -> int:
    """In a dead-letter queue the count carries on; whoever is moved back has a new life."""
    return message.attempts if message.dead_from is None else message.lease_no


def _is_special(asked: Asked, queue: Queue) -> bool:
    """It may have to wait, or there is more to look at first."""
    given: ReceiveMessageRequest = asked.input
    return bool(
        _wait_ms(queue, given)
        or given.ReceiveRequestAttemptId is not None
        or asked.settings.limits == "strict"
    )


def _check(queue: Queue, given: ReceiveMessageRequest) -> None:
    if given.MaxNumberOfMessages is not None:
        content.check_max_messages(given.MaxNumberOfMessages)
    if given.VisibilityTimeout is not None:
        content.check_visibility_timeout(given.VisibilityTimeout)
    if given.WaitTimeSeconds is not None:
        content.check_wait_time(given.WaitTimeSeconds)
    attempt_id = given.ReceiveRequestAttemptId
    if attempt_id is not None:
        if not queue.is_ordered:
            raise content.not_for_this_queue_type(attempt_id, "ReceiveRequestAttemptId")
        content.check_attempt_id(attempt_id)


def _limit(given: ReceiveMessageRequest) -> int:
    return 1 if given.MaxNumberOfMessages is None else given.MaxNumberOfMessages


def _lease_ms(given: ReceiveMessageRequest) -> int | None:
    return None if given.VisibilityTimeout is None else given.VisibilityTimeout * SECOND


def _wait_ms(queue: Queue, given: ReceiveMessageRequest) -> int:
    if given.WaitTimeSeconds is not None:
        return given.WaitTimeSeconds * SECOND
    # Another face may have set more than clients of SQS have patience for.
    return min(queue.settings.wait_ms or 0, content.LONGEST_WAIT * SECOND)


def _not_repeatable(given: ReceiveMessageRequest) -> SqsError:
    return invalid_value(
        given.ReceiveRequestAttemptId,
        "ReceiveRequestAttemptId",
        "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable.",
    )
