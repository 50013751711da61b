"""DeleteMessage, ChangeMessageVisibility, and their batches.

A receipt handle stands for a lease.  SQS also accepts expired handles; a second step handles those,
so that the usual case stays short.  In a standard queue an expired handle still deletes the message
unless it was received again, even if it has died meanwhile; and any handle of a message can change
its visibility.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from penstock.domain.errors import LeaseLost, PenstockError
from penstock.domain.limits import SECOND
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import Queue
from penstock.edge.aws.api import AnyAnswer, PendingAnswer
from penstock.edge.aws.errors import AwsError, invalid_value
from penstock.edge.sqs.call import QueueLookup, SqsCall
from penstock.edge.sqs.errors import (
    from_core,
    receipt_handle_is_invalid,
    receipt_handle_of_another_queue,
    require,
)
from penstock.edge.sqs.rules import content
from penstock.edge.sqs.wire.model import (
    ChangeMessageVisibilityBatchRequestEntry,
    ChangeMessageVisibilityBatchResult,
    ChangeMessageVisibilityBatchResultEntry,
    DeleteMessageBatchRequestEntry,
    DeleteMessageBatchResult,
    DeleteMessageBatchResultEntry,
)
from penstock.ports.clock import Clock
from penstock.services.messages import MessageService

Planned = list[LeaseAct | AwsError]


class VisibilityActions:
    def __init__(self, messages: MessageService, lookup: QueueLookup, clock: Clock) -> None:
        self._messages = messages
        self._lookup = lookup
        self._clock = clock

    # --- delete ---

    def delete(self, call: SqsCall) -> AnyAnswer:
        queue = self._lookup.cached_queue(call)
        if queue is None:
            return self._delete_slowly(call)
        act = self._deletion(queue, call.input.ReceiptHandle)
        return PendingAnswer(
            self._messages.act([act]),
            lambda answers: self._deletion_result(queue, call.input.ReceiptHandle, act, answers[0]),
        )

    async def _delete_slowly(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        handle = call.input.ReceiptHandle
        act = self._deletion(queue, handle)
        [answer] = await self._messages.act([act])
        await self._finish_deletion(queue, handle, act, answer)

    def _deletion_result(self, queue: Queue, handle: str, act: LeaseAct, answer: Any) -> Any:
        if isinstance(answer, LeaseLost):
            return self._finish_deletion(queue, handle, act, answer)
        if isinstance(answer, PenstockError):
            raise from_core(answer)
        return None

    async def _finish_deletion(self, queue: Queue, handle: str, act: LeaseAct, answer: Any) -> None:
        [result] = await self._second_step(queue, [handle], [act], [answer])
        if result is not None:
            raise result

    def _deletion(self, queue: Queue, handle: str | None) -> LeaseAct:
        lease = self._lease(queue, handle)
        return self._messages.plan(lease, Verb.COMPLETE, rejects_late=queue.is_ordered)

    async def delete_batch(self, call: SqsCall) -> DeleteMessageBatchResult:
        queue = await self._lookup.queue(call)
        entries = content.check_entries(call.input.Entries, DeleteMessageBatchRequestEntry)
        planned = [_or_error(self._deletion, queue, entry.ReceiptHandle) for entry in entries]
        results = await self._act(queue, [entry.ReceiptHandle or "" for entry in entries], planned)
        split = content.split_results(entries, results, DeleteMessageBatchResultEntry)
        return DeleteMessageBatchResult(*split)

    # --- change visibility ---

    async def change(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        given = call.input
        act = self._change(queue, given.ReceiptHandle, given.VisibilityTimeout)
        [error] = await self._act(queue, [given.ReceiptHandle], [act])
        if error is not None:
            raise error

    async def change_batch(self, call: SqsCall) -> ChangeMessageVisibilityBatchResult:
        queue = await self._lookup.queue(call)
        entries = content.check_entries(
            call.input.Entries, ChangeMessageVisibilityBatchRequestEntry
        )
        planned = [
            _or_error(self._change, queue, entry.ReceiptHandle, entry.VisibilityTimeout)
            for entry in entries
        ]
        results = await self._act(queue, [entry.ReceiptHandle or "" for entry in entries], planned)
        split = content.split_results(entries, results, ChangeMessageVisibilityBatchResultEntry)
        return ChangeMessageVisibilityBatchResult(*split)

    def _change(self, queue: Queue, handle: str | None, seconds: int | None) -> LeaseAct:
        lease = self._lease(queue, handle)
        timeout = require(seconds, "VisibilityTimeout")
        content.check_visibility_timeout(timeout)
        held_ms = self._clock.now() - lease.leased_at
        if held_ms + timeout * SECOND > content.LONGEST_VISIBILITY * SECOND:
            raise invalid_value(
                timeout,
                "VisibilityTimeout",
                "Total VisibilityTimeout for the message is beyond the limit "
                f"[{content.LONGEST_VISIBILITY} seconds].",
            )
        return self._messages.plan(lease, Verb.EXTEND, delay_ms=timeout * SECOND)

    # --- shared ---

    def _lease(self, queue: Queue, handle: str | None) -> Lease:
        text = require(handle or None, "ReceiptHandle")
        try:
            lease = self._messages.read_receipt(text)
        except LeaseLost:
            raise receipt_handle_is_invalid(text) from None
        if lease.queue_no != queue.queue_no:
            raise receipt_handle_of_another_queue(text)
        return lease

    async def _act(
        self, queue: Queue, handles: Sequence[str], planned: Planned
    ) -> list[AwsError | None]:
        """Apply all acts in one transaction; the result of each is an error or None."""
        acts = [plan for plan in planned if isinstance(plan, LeaseAct)]
        answers = iter(await self._messages.act(acts) if acts else [])
        first = [plan if isinstance(plan, AwsError) else next(answers) for plan in planned]
        return await self._second_step(queue, handles, planned, first)

    async def _second_step(
        self, queue: Queue, handles: Sequence[str], planned: Planned, answers: Sequence[Any]
    ) -> list[AwsError | None]:
        results = list(answers)
        lost = {
            i: plan
            for i, (plan, answer) in enumerate(zip(planned, answers, strict=True))
            if isinstance(answer, LeaseLost) and isinstance(plan, LeaseAct)
        }
        if lost:
            found = await self._messages.of_leases([act.lease for act in lost.values()])
            again = {i: late for i, act in lost.items() if (late := self._late(queue, act, found))}
            for i, act in lost.items():
                if act.verb is Verb.COMPLETE and act.lease.message_no not in found:
                    results[i] = None  # deleting twice is not an error
            if again:
                late_answers = await self._messages.act(list(again.values()))
                results = _replace_results(results, dict(zip(again, late_answers, strict=True)))
        return [
            self._error_of(queue, handle, plan, result)
            for handle, plan, result in zip(handles, planned, results, strict=True)
        ]

    def _late(self, queue: Queue, act: LeaseAct, found: Mapping[int, Message]) -> LeaseAct | None:
        """The act to try for an expired handle; None if the error stands."""
        message = found.get(act.lease.message_no)
        if message is None or queue.is_ordered:
            return None
        lease = Lease.of(message) if act.verb is Verb.EXTEND else act.lease
        if message.queue_no != queue.queue_no:
            # It died meanwhile.  On AWS it would still be here: messages die at the next receive.
            if message.dead_from != queue.queue_no or act.verb is not Verb.COMPLETE:
                return None
            lease = replace(lease, queue_no=message.queue_no)
        return self._messages.plan(lease, act.verb, delay_ms=act.delay_ms, is_late_ok=True)

    def _error_of(self, queue: Queue, handle: str, plan: Any, result: Any) -> AwsError | None:
        if isinstance(result, AwsError):
            return result
        if not isinstance(result, PenstockError):
            return None
        if not isinstance(result, LeaseLost):
            return from_core(result)
        if plan.verb is Verb.EXTEND:
            return invalid_value(
                handle,
                "ReceiptHandle",
                "Message does not exist or is not available for visibility timeout change.",
            )
        if queue.is_ordered:
            return invalid_value(handle, "ReceiptHandle", "The receipt handle has expired.")
        return None  # another receiver has it now and may delete it


def _replace_results(results: list[Any], late: Mapping[int, Any]) -> list[Any]:
    return [late.get(i, result) for i, result in enumerate(results)]


def _or_error(plan: Any, *given: Any) -> Any:
    try:
        return plan(*given)
    except AwsError as error:
        return error
