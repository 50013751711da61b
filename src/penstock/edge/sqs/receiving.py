"""ReceiveMessage."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from penstock.domain.bus import envelope
from penstock.domain.errors import ClaimNotRepeatable
from penstock.domain.limits import SECOND
from penstock.domain.message.lifecycle import Content, Message
from penstock.domain.queue.queue import Queue
from penstock.edge.aws.api import AnyAnswer, PendingAnswer
from penstock.edge.aws.errors import AwsError, invalid_value
from penstock.edge.server.errors import unexpected
from penstock.edge.sqs.call import QueueLookup, SqsCall
from penstock.edge.sqs.errors import over_limit
from penstock.edge.sqs.rules import body, content, message_attributes
from penstock.edge.sqs.wire import model
from penstock.edge.sqs.wire.model import ReceiveMessageRequest, ReceiveMessageResult
from penstock.ports.store import Claimed
from penstock.runtime.waiting_claims import ClaimWaiter
from penstock.services.envelopes import EnvelopeSigner
from penstock.services.messages import MessageService
from penstock.services.queues import QueueService

MAX_IN_FLIGHT = 120_000  # the limit of AWS, with strict limits
_NOTHING: frozenset[str] = frozenset()


class ReceiveActions:
    def __init__(
        self,
        messages: MessageService,
        queues: QueueService,
        lookup: QueueLookup,
        waiting: ClaimWaiter,
        signer: EnvelopeSigner,
        *,
        max_wait_ms: int,
    ) -> None:
        self._messages = messages
        self._queues = queues
        self._lookup = lookup
        self._waiting = waiting
        self._signer = signer
        self._max_wait_ms = max_wait_ms

    def receive(self, call: SqsCall) -> AnyAnswer:
        queue = self._lookup.cached_queue(call)
        given: ReceiveMessageRequest = call.input
        if queue is None or _is_special(call, queue):
            return self._receive_slowly(call)
        _check(queue, given)
        ticket = self._messages.claim(
            queue,
            limit=_limit(given),
            lease_ms=_lease_ms(given),
            in_a_row=queue.is_ordered,
        )
        return PendingAnswer(
            ticket,
            lambda claimed: self._received(call, queue, claimed),
            partial(self._messages.error_of, queue.name),
        )

    async def _receive_slowly(self, call: SqsCall) -> ReceiveMessageResult:
        given: ReceiveMessageRequest = call.input
        queue = await self._lookup.queue(call)
        _check(queue, given)
        wait_ms = _wait_ms(queue, given)
        if call.settings.limits == "strict" and await self._is_full(queue):
            if wait_ms:
                return ReceiveMessageResult()
            raise over_limit(f"More than {MAX_IN_FLIGHT} messages would be in flight.")
        try:
            claimed = await self._waiting.claim(
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
        return await self._received_slowly(call, queue, claimed)

    async def _is_full(self, queue: Queue) -> bool:
        """Whether the limit of messages in flight is reached, not counting expired leases."""
        if (await self._queues.get(queue.name)).counts.leased < MAX_IN_FLIGHT:
            return False
        await self._queues.make_due_ready_some(queue.name)
        return (await self._queues.get(queue.name)).counts.leased >= MAX_IN_FLIGHT

    def _received(
        self, call: SqsCall, queue: Queue, claimed: Claimed
    ) -> ReceiveMessageResult | Awaitable[ReceiveMessageResult]:
        for message, _ in claimed.messages:
            home = message.dead_from
            if home is not None and self._lookup.known_name(home) is None:
                return self._received_slowly(call, queue, claimed)
            if message.kind == envelope.KIND and not self._signer.is_loaded:
                return self._received_slowly(call, queue, claimed)
        return self._result(call, queue, claimed)

    async def _received_slowly(
        self, call: SqsCall, queue: Queue, claimed: Claimed
    ) -> ReceiveMessageResult:
        """Look up what the result needs, then build it.

        That is the names of the queues that dead letters died in, and the key pair for envelopes.
        """
        for message, _ in claimed.messages:
            if message.dead_from is not None:
                await self._lookup.name_of(message.dead_from)
            if message.kind == envelope.KIND:
                await self._signer.load()
        return self._result(call, queue, claimed)

    def _result(self, call: SqsCall, queue: Queue, claimed: Claimed) -> ReceiveMessageResult:
        given: ReceiveMessageRequest = call.input
        names = given.MessageSystemAttributeNames
        if names is None:
            names = given.AttributeNames
        wanted = frozenset(names) if names else _NOTHING
        shown: list[model.Message] = []
        left_out: list[Message] = []
        for message, sent in claimed.messages:
            if left_out and queue.is_ordered and _is_behind(message, left_out):
                left_out.append(message)
                continue
            try:
                shown.append(self._render(call, queue, message, sent, wanted))
            except Exception as error:  # a bug must not affect the other messages
                unexpected(error)
                left_out.append(message)
        if left_out:
            self._release(left_out)
        return ReceiveMessageResult(shown)

    def _release(self, left_out: list[Message]) -> None:
        """Release the messages after one that cannot be rendered.

        That one keeps its lease: if it were released, the next claim would return it first,
        forever; this way it dies once its attempts are used up.
        """
        behind = [m for n, m in enumerate(left_out) if _is_behind(m, left_out[:n])]
        if behind:
            self._messages.release(behind)

    def _render(
        self,
        call: SqsCall,
        queue: Queue,
        message: Message,
        sent: Content,
        wanted: frozenset[str],
    ) -> model.Message:
        text = sent.body
        if message.kind == envelope.KIND:
            text = self._signer.complete(text, base=call.base)
        shown = body.render(text)
        out = model.Message(
            message.id,
            self._messages.receipt(message),
            body.md5_of_body(shown.utf8),
            body.as_raw(shown),
        )
        if wanted:
            known = self._system_attributes(call, queue, message, sent)
            out.Attributes = {
                name: text
                for name, text in known.items()
                if text is not None and ("All" in wanted or name in wanted)
            }
        if sent.attributes and call.input.MessageAttributeNames:
            out.MessageAttributes = message_attributes.from_stored(
                sent.attributes, call.input.MessageAttributeNames
            )
            out.MD5OfMessageAttributes = body.md5_of_attributes(out.MessageAttributes)
        return out

    def _system_attributes(
        self, call: SqsCall, queue: Queue, message: Message, sent: Content
    ) -> dict[str, str | None]:
        home = None if message.dead_from is None else self._lookup.known_name(message.dead_from)
        return {
            "SenderId": call.settings.account,
            "SentTimestamp": str(message.sent_at),
            "ApproximateReceiveCount": str(_receives(message)),
            "ApproximateFirstReceiveTimestamp": str(message.first_leased_at),
            "AWSTraceHeader": sent.trace,
            "DeadLetterQueueSourceArn": None if home is None else call.arn(home),
            "MessageGroupId": message.group,
            "MessageDeduplicationId": message.dedup_key if queue.is_ordered else None,
            "SequenceNumber": (
                content.sequence_number(message.message_no) if queue.is_ordered else None
            ),
        }


def _is_behind(message: Message, others: list[Message]) -> bool:
    return message.group is not None and any(message.group == other.group for other in others)


def _receives(message: Message) -> int:
    """The receive count; it continues in a dead-letter queue, and a redrive resets it to zero."""
    return message.attempts if message.dead_from is None else message.lease_no


def _is_special(call: SqsCall, queue: Queue) -> bool:
    """Whether the claim may wait, is repeatable, or must be checked against strict limits."""
    given: ReceiveMessageRequest = call.input
    return bool(
        _wait_ms(queue, given)
        or given.ReceiveRequestAttemptId is not None
        or call.settings.limits == "strict"
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
        content.check_id("ReceiveRequestAttemptId", attempt_id)


def _limit(given: ReceiveMessageRequest) -> int:
    return 1 if given.MaxNumberOfMessages is None else given.MaxNumberOfMessages


def _lease_ms(given: ReceiveMessageRequest) -> int | None:
    return None if given.VisibilityTimeout is None else given.VisibilityTimeout * SECOND


def _wait_ms(queue: Queue, given: ReceiveMessageRequest) -> int:
    if given.WaitTimeSeconds is not None:
        return given.WaitTimeSeconds * SECOND
    # Another API may have set a longer wait than SQS clients expect.
    return min(queue.settings.wait_ms or 0, content.LONGEST_WAIT * SECOND)


def _not_repeatable(given: ReceiveMessageRequest) -> AwsError:
    return invalid_value(
        given.ReceiveRequestAttemptId,
        "ReceiveRequestAttemptId",
        "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable.",
    )
