"""Results of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.api import sends
from penstock.api.messages import Acted as Record
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.limits import Limits
from penstock.edge.instants import to_text
from penstock.edge.server.errors import error_answer
from penstock.ports.store import Acted, Sent


def check_batch(size: int, limits: Limits) -> None:
    if not 1 <= size <= limits.max_batch:
        raise InvalidRequest(f"a batch has 1 to {limits.max_batch} entries, not {size}")


def results(planned: Sequence[Any], answers: Sequence[Any]) -> list[Any]:
    """Of acts, in their order: those that could not be planned have their errors already."""
    left = iter(answers)
    return [result_of(plan if isinstance(plan, PenstockError) else next(left)) for plan in planned]


def acted(result: Acted) -> Record:
    return Record(result.id, result.state, to_text(result.due_at))  # type: ignore[arg-type]


def result_of(result: Any) -> Any:
    if isinstance(result, Sent):
        return sends.Sent(result.id, result.is_duplicate)
    return error_answer(result) if isinstance(result, PenstockError) else acted(result)
