"""Move tasks: messages moved out of a queue in the background."""

from __future__ import annotations

from typing import Annotated, Self

from penstock.api.operation import (
    AnswerRecord,
    Id,
    Instant,
    Limit,
    Positive,
    QueryRecord,
    RequestRecord,
    ToInstant,
    about,
    get,
    named,
    post,
)
from penstock.domain.errors import MoveNotRunning, MoveRunning, TargetNotFound
from penstock.domain.message.move_task import MoveState, MoveTask

MaxPerSecond = Annotated[
    Positive | None, about("The maximum number of messages moved per second; null: no limit.")
]


class StartMove(RequestRecord):
    to: Annotated[str | None, about("The queue to move them to; null: the one each died in.")] = (
        None
    )
    max_per_second: MaxPerSecond = None


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
    max_per_second: MaxPerSecond = None
    ended_at: Annotated[Instant | None, about("When it completed, failed or was cancelled.")] = None
    reason: Annotated[str | None, about("Why it failed: queue_not_found or home_unknown.")] = None

    @classmethod
    def of(cls, task: MoveTask, instant: ToInstant) -> Self:
        return cls.copy_of(task, instant, id=task.task_id, queue=task.source, to=task.target)


class Moves(AnswerRecord, frozen=True):
    moves: Annotated[list[Move], about("The moves, newest first.")]


class LatestMoves(QueryRecord):
    limit: Limit = 100


START = post(
    "startMove",
    "/v1/queues/{queue}/moves",
    "Start moving messages out of a queue in the background, at a limited rate.",
    Move,
    request=StartMove,
    example={"max_per_second": 50},
    status=201,
    errors=(MoveRunning, TargetNotFound),
)
LIST = get(
    "listMoves",
    "/v1/queues/{queue}/moves",
    "List the latest moves out of a queue, newest first.",
    Moves,
    query=LatestMoves,
)
GET = named.get("getMove", "/v1/moves/{move}", "Retrieve a move, running or ended.", Move)
CANCEL = named.post(
    "cancelMove",
    "/v1/moves/{move}/cancel",
    "Stop a running move; messages already moved stay where they are.",
    Move,
    errors=(MoveNotRunning,),
)
