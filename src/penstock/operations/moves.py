"""Move tasks."""

from __future__ import annotations

from functools import partial

from penstock.api import moves
from penstock.api.moves import LatestMoves, Move, StartMove
from penstock.domain.access.api_key import Role, allow
from penstock.domain.queue.queue import check_name
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.moves import MoveService


class MoveOperations:
    def __init__(self, service: MoveService) -> None:
        self._moves = service

    def handlers(self) -> Handlers:
        return {
            moves.START: self.start,
            moves.LIST: self.latest,
            moves.GET: self.get,
            moves.CANCEL: self.cancel,
        }

    def start(self, call: Call[StartMove, None]) -> Work[Move]:
        target = call.body.to
        if target is not None:
            allow(call.caller, Role.OPERATE, check_name(target))
        started = self._moves.start(
            call.path["queue"], target=target, max_per_second=call.body.max_per_second
        )
        return started.map(partial(Move.of, instant=call.instant))

    def latest(self, call: Call[None, LatestMoves]) -> Work[moves.Moves]:
        found = self._moves.of_source(call.path["queue"], limit=call.query.limit)
        return found.map(
            lambda tasks: moves.Moves(moves=[Move.of(task, call.instant) for task in tasks])
        )

    def get(self, call: Call[None, None]) -> Steps[Move]:
        task = yield from self._moves.get(call.path["move"])
        allow(call.caller, Role.READ, task.source)
        return Move.of(task, call.instant)

    def cancel(self, call: Call[None, None]) -> Steps[Move]:
        task = yield from self._moves.get(call.path["move"])
        allow(call.caller, Role.OPERATE, task.source)
        cancelled = yield from self._moves.cancel(task.task_id)
        return Move.of(cancelled, call.instant)
