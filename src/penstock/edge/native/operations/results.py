"""Answers that several operations share: results of a batch, and a queue that is suddenly gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.api import messages, sends
from penstock.domain.errors import InvalidRequest, PenstockError, QueueNotFound
from penstock.domain.limits import Limits
from penstock.domain.queue.queue import Queue
from penstock.edge.instants import to_text
from penstock.edge.server.errors import error_answer, error_response
from penstock.edge.server.request import Response
from penstock.ports.store import Acted, Sent
from penstock.services.directory import Directory


def check_batch(size: int, limits: Limits) -> None:
    if not 1 <= size <= limits.max_batch:
        raise InvalidRequest(f"a batch has 1 to {limits.max_batch} entries, not {size}")


def results(planned: Sequence[Any], answers: Sequence[Any]) -> list[Any]:
    """The answers in the places of what was planned, refusals where there was none to be had."""
    left = iter(answers)
    return [_result(plan if isinstance(plan, PenstockError) else next(left)) for plan in planned]


def refusal(error: Any, queue: Queue, directory: Directory) -> Response:
    if isinstance(error, QueueNotFound):
        directory.forget(queue.name)  # it was removed a moment ago
        error = QueueNotFound(queue.name)
    if isinstance(error, PenstockError):
        return error_response(error)
    raise error


def acted(result: Acted) -> messages.Acted:
    due_at = to_text(result.due_at)
    return messages.Acted(result.id, result.state, due_at)  # type: ignore[arg-type]


def _result(result: Any) -> Any:
    if isinstance(result, Sent):
        return sends.Sent(result.id, result.is_duplicate)
    return error_answer(result) if isinstance(result, PenstockError) else acted(result)
