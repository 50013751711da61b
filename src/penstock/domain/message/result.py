"""What became of a message, for callers that wait for its end."""

from __future__ import annotations

import msgspec

from penstock.domain.limits import Limits, check_json_size
from penstock.domain.message.lifecycle import State

ENDED = frozenset({State.DONE, State.DEAD, State.CANCELLED})


class MessageResult(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    queue: str
    state: State
    result: str | None = None  # JSON text; None: its completion had none
    error: str | None = None  # of a message that is dead or was cancelled
    reason: str | None = None
    finished_at: int | None = None

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED


def state_for_waiters(state: State, *, is_dead_letter: bool) -> State:
    """DEAD also for one that moved to a dead-letter queue, although it is ready there."""
    return State.DEAD if is_dead_letter else state


def check_result(result: str | None, limits: Limits) -> str | None:
    """Return the JSON text; raises TooLarge."""
    if result is not None:
        check_json_size("the result", result, limits, "max_result_bytes")
    return result
