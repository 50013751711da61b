"""What became of messages: live, dead in a queue, or ended in history."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.limits import DAY
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import State
from penstock.domain.message.result import MessageResult, state_for_waiters
from penstock.store.database import Row
from penstock.store.entities.entity import SqlEntity
from penstock.store.verbs.transaction_state import json_list


class SqlResults(SqlEntity):
    def of(self, ids: Sequence[str]) -> dict[str, MessageResult]:
        live = {row[0]: _live(row) for row in self._db.rows("results.live", _params(ids))}
        # The history of a dead message has the instant and the reason of its death.
        ended = self._ended([id for id in ids if id not in live or live[id].is_ended])
        found = live | {
            id: found for id, found in ended.items() if id not in live or live[id].is_ended
        }
        unknown = [id for id in ids if id not in found]
        return found | self._unsent(unknown) if unknown else found

    def _unsent(self, ids: Sequence[str]) -> dict[str, MessageResult]:
        """Members of flows that wait for others, or were never sent."""
        rows = self._db.rows("results.unsent", _params(ids))
        return {row[0]: _unsent(row) for row in rows}

    def of_ending(self, ending: Ending) -> str | None:
        if ending.outcome is not State.DONE:
            return None
        params = {"history_no": ending.history_no}
        rows = self._db.rows("results.of_ending", params, day=ending.finished_at // DAY)
        return rows[0][0] if rows else None

    def running(self, ids: Sequence[str]) -> set[str]:
        return {id for (id,) in self._db.rows("results.running", _params(ids))}

    def _ended(self, ids: Sequence[str]) -> dict[str, MessageResult]:
        found: dict[str, MessageResult] = {}
        missing = list(ids)
        days = self._transaction.partitions.days()
        at_once = 1
        while days and missing:
            params = _params(missing)
            # The first day usually suffices; if not, query many at once.
            asked = [self._db.ask("results.ended", params, day=days.pop()) for _ in days[-at_once:]]
            for answer in asked:
                for row in answer.rows():
                    found.setdefault(row[0], _ended(row))
            missing = [id for id in missing if id not in found]
            at_once *= 2
        return found


def _params(ids: Sequence[str]) -> dict[str, str]:
    return {"ids": json_list(list(ids))}


def _live(row: Row) -> MessageResult:
    message_id, queue, state, dead_from, reason, error = row
    seen = state_for_waiters(State(state), is_dead_letter=dead_from is not None)
    is_dead = seen is State.DEAD
    return MessageResult(
        id=message_id,
        queue=queue,
        state=seen,
        reason=reason if is_dead else None,
        error=error if is_dead else None,
    )


def _unsent(row: Row) -> MessageResult:
    message_id, queue, state, reason, ended_at = row
    ended = {"blocked": State.WAITING, "done": State.DONE}
    return MessageResult(
        id=message_id,
        queue=queue,
        state=ended.get(state, State.CANCELLED),
        reason=reason,
        finished_at=ended_at,
    )


def _ended(row: Row) -> MessageResult:
    message_id, queue, outcome, reason, error, finished_at, result = row
    state = State(outcome)
    return MessageResult(
        id=message_id,
        queue=queue,
        state=state,
        result=result,
        reason=reason,
        error=None if state is State.DONE else error,
        finished_at=finished_at,
    )
