"""Move tasks: messages moved out of a queue in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self

from penstock.api.operation import (
    AnswerRecord,
    Id,
    Instant,
    Limit,
    Operation,
    Positive,
    QueryRecord,
    RequestRecord,
    about,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import MoveNotRunning, MoveRunning, TargetNotFound
from penstock.domain.message.move_task import MoveState, MoveTask


class StartMove(RequestRecord):
    to: Annotated[str | None, about("The queue to move them to; null: the one each died in.")] = (
        None
    )
    max_per_second: Annotated[
        Positive | None, about("How many messages are moved per second at most; null: no limit.")
    ] = None


class Move(AnswerRecord, frozen=True, omit_defaults=True):
    """A move task; fields without a value are left out."""

    id: Annotated[Id, about("The move's id.")]
    queue: Annotated[str, about("The queue that messages are moved out of.")]
    state: Annotated[MoveState, about("The state of the move.")]
    to_move: Annotated[int, about("The approximate number of messages at the start.")]
    moved: Annotated[int, about("The number of messages moved so far.")]
    started_at: Annotated[Instant, about("When it was started.")]
    to: Annotated[
        str | None,
        about("The queue they are moved to. Absent if each returns to the queue it died in."),
    ] = None
    max_per_second: Annotated[
        Positive | None, about("How many messages are moved per second at most; null: no limit.")
    ] = None
    ended_at: Annotated[Instant | None, about("When it completed, failed or was cancelled.")] = None
    reason: Annotated[str | None, about("Why it failed: queue_not_found or home_unknown.")] = None

    @classmethod
    def of(cls, task: MoveTask, instant: Callable[[int], Instant]) -> Self:
        return cls(
            id=task.task_id,
            queue=task.source,
            state=task.state,
            to_move=task.to_move,
            moved=task.moved,
            started_at=instant(task.started_at),
            to=task.target,
            max_per_second=task.max_per_second,
            ended_at=None if task.ended_at is None else instant(task.ended_at),
            reason=task.reason,
        )


class Moves(AnswerRecord, frozen=True):
    moves: Annotated[list[Move], about("The moves, newest first.")]


class LatestMoves(QueryRecord):
    limit: Limit = 100


START = Operation(
    name="startMove",
    method="POST",
    path="/v1/queues/{queue}/moves",
    summary="Start moving messages out of a queue in the background, at a limited rate.",
    role=Role.OPERATE,
    request=StartMove,
    example={"max_per_second": 50},
    answer=Move,
    status=201,
    errors=(MoveRunning, TargetNotFound),
)
LIST = Operation(
    name="listMoves",
    method="GET",
    path="/v1/queues/{queue}/moves",
    summary="List the latest moves out of a queue, newest first.",
    role=Role.READ,
    query=LatestMoves,
    answer=Moves,
)
GET = Operation(
    name="getMove",
    method="GET",
    path="/v1/moves/{move}",
    summary="Retrieve a move, running or ended.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Move,
)
CANCEL = Operation(
    name="cancelMove",
    method="POST",
    path="/v1/moves/{move}/cancel",
    summary="Stop a running move; messages already moved stay where they are.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    answer=Move,
    errors=(MoveNotRunning,),
)
