"""Message move tasks: start, list, cancel."""

from __future__ import annotations

import base64
import binascii
import re

import msgspec

from penstock.domain.errors import (
    InvalidRequest,
    MoveNotFound,
    MoveNotRunning,
    MoveRunning,
    QueueNotFound,
    TargetNotFound,
)
from penstock.domain.message.move_task import HOME_UNKNOWN, QUEUE_NOT_FOUND, MoveState, MoveTask
from penstock.edge.aws.errors import AwsError, invalid_parameter, invalid_value
from penstock.edge.sqs.call import SqsCall, allow
from penstock.edge.sqs.errors import queue_does_not_exist, require, resource_not_found
from penstock.edge.sqs.rules import content, names
from penstock.edge.sqs.wire.model import (
    CancelMessageMoveTaskResult,
    ListMessageMoveTasksRequest,
    ListMessageMoveTasksResult,
    ListMessageMoveTasksResultEntry,
    StartMessageMoveTaskRequest,
    StartMessageMoveTaskResult,
)
from penstock.ports.unit_of_work import await_steps
from penstock.services.bulk.moves import MoveService
from penstock.services.queues import QueueService

MAX_PER_SECOND = 500
MAX_LISTED = 10
_REASONS = {
    QUEUE_NOT_FOUND: queue_does_not_exist().code,
    HOME_UNKNOWN: "CouldNotDetermineMessageSource",
}
_TASK_ID = re.compile("[0-9a-f-]{36}")


class _Handle(msgspec.Struct):
    taskId: str  # noqa: N815
    sourceArn: str  # noqa: N815


_handle = msgspec.json.Decoder(_Handle)
_encode = msgspec.json.Encoder().encode


class MoveTaskActions:
    def __init__(self, moves: MoveService, queues: QueueService) -> None:
        self._moves = moves
        self._queues = queues

    async def start(self, call: SqsCall) -> StartMessageMoveTaskResult:
        given: StartMessageMoveTaskRequest = call.input
        source_arn = require(given.SourceArn, "SourceArn")
        source = self._name(call, source_arn, "SourceArn")
        target = None
        if given.DestinationArn is not None:
            target = self._name(call, given.DestinationArn, "DestinationArn")
            if target == source:
                raise invalid_parameter(
                    "Source queue arn and destination queue arn cannot be the same."
                )
        rate = given.MaxNumberOfMessagesPerSecond
        if rate is not None and not 1 <= rate <= MAX_PER_SECOND:
            reason = f"Must be between 1 and {MAX_PER_SECOND}, if provided."
            raise invalid_value(rate, "MaxNumberOfMessagesPerSecond", reason)
        await self._check_is_dead_letter_queue(source)
        # Messages that were received with a visibility timeout of 0 are moved as well.
        await await_steps(self._queues.make_all_due_ready(source))
        try:
            task = await self._moves.start(source, target=target, max_per_second=rate)
        except TargetNotFound:  # a subclass of QueueNotFound
            raise _no_resource("DestinationArn") from None
        except QueueNotFound:
            raise _no_resource("SourceArn") from None
        except InvalidRequest:  # the other errors of the core were checked above
            raise invalid_parameter(
                "Source queue and destination queue must both be FIFO queues or both be standard "
                "queues."
            ) from None
        except MoveRunning:
            raise invalid_parameter(
                "There is already a task running. Only one active task is allowed for a source "
                "queue arn at a given time."
            ) from None
        return StartMessageMoveTaskResult(_task_handle(call, task))

    async def list(self, call: SqsCall) -> ListMessageMoveTasksResult:
        given: ListMessageMoveTasksRequest = call.input
        source = self._name(call, require(given.SourceArn, "SourceArn"), "SourceArn")
        if given.MaxResults is not None:
            content.check_max_results(given.MaxResults, most=MAX_LISTED)
        try:
            found = await self._moves.of_source(source, limit=given.MaxResults or 1)
        except QueueNotFound:
            raise _no_resource("SourceArn") from None
        return ListMessageMoveTasksResult([_entry(call, task) for task in found])

    async def cancel(self, call: SqsCall) -> CancelMessageMoveTaskResult:
        handle = _read_handle(require(call.input.TaskHandle, "TaskHandle"))
        source = self._name(call, handle.sourceArn, "SourceArn")
        if not await self._queues.exists(source):
            raise _no_resource("SourceArn")
        try:
            # A handle can be forged: check that the task moves from the authorised queue.
            is_id = _TASK_ID.fullmatch(handle.taskId) is not None
            if not is_id or (await self._moves.get(handle.taskId)).source != source:
                raise MoveNotFound(handle.taskId)
            task = await self._moves.cancel(handle.taskId)
        except MoveNotFound:
            raise resource_not_found("Task does not exist.") from None
        except MoveNotRunning:
            raise invalid_parameter("Only active tasks can be cancelled.") from None
        return CancelMessageMoveTaskResult(task.moved)

    def _name(self, call: SqsCall, text: str, parameter: str) -> str:
        """The queue of an ARN; raises if the caller may not move its messages."""
        arn = names.of_arn(text)
        if arn is None or arn.account != call.settings.account or not names.is_possible(arn.name):
            raise _no_resource(parameter)
        allow(call, arn.name)
        return arn.name

    async def _check_is_dead_letter_queue(self, name: str) -> None:
        if not await self._queues.exists(name):
            raise _no_resource("SourceArn")
        if not await self._queues.page(dead_letter_queue=name, limit=1):
            raise invalid_parameter("Source queue must be configured as a Dead Letter Queue.")


def _entry(call: SqsCall, task: MoveTask) -> ListMessageMoveTasksResultEntry:
    return ListMessageMoveTasksResultEntry(
        TaskHandle=_task_handle(call, task) if task.state is MoveState.RUNNING else None,
        Status=task.state.value.upper(),
        SourceArn=call.arn(task.source),
        DestinationArn=None if task.target is None else call.arn(task.target),
        MaxNumberOfMessagesPerSecond=task.max_per_second,
        ApproximateNumberOfMessagesMoved=task.moved,
        ApproximateNumberOfMessagesToMove=task.to_move,
        FailureReason=_REASONS.get(task.reason or "", task.reason),
        StartedTimestamp=task.started_at,
    )


def _task_handle(call: SqsCall, task: MoveTask) -> str:
    handle = _Handle(task.task_id, call.arn(task.source))
    return base64.b64encode(_encode(handle)).decode()


def _read_handle(text: str) -> _Handle:
    try:
        return _handle.decode(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise invalid_parameter("Value for parameter TaskHandle is invalid.") from None


def _no_resource(parameter: str) -> AwsError:
    return resource_not_found(
        f"The resource that you specified for the {parameter} parameter doesn't exist."
    )
