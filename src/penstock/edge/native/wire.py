"""JSON of the native API: request bodies, and results of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from penstock.api import messages
from penstock.api.messages import Acted as Record
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.limits import Limits
from penstock.edge.instants import to_text
from penstock.edge.server.errors import error_answer
from penstock.ports.store import Acted, Sent

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Decode a body; raises InvalidRequest with the position of the mistake."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from None
    except (RecursionError, UnicodeDecodeError):
        raise InvalidRequest("the JSON is nested too deeply or not valid UTF-8") from None


def raw_json(json_text: str) -> msgspec.Raw:
    """Return JSON as it is stored; decoding it could change a value."""
    return msgspec.Raw(json_text.encode())


def check_batch(size: int, limits: Limits) -> None:
    if not 1 <= size <= limits.max_batch:
        raise InvalidRequest(f"a batch has 1 to {limits.max_batch} entries, not {size}")


def results(planned: Sequence[Any], answers: Sequence[Any]) -> list[Any]:
    """The results of acts, in order; an act that could not be planned has its error."""
    left = iter(answers)
    return [result_of(plan if isinstance(plan, PenstockError) else next(left)) for plan in planned]


def acted(result: Acted) -> Record:
    return Record(result.id, result.state, to_text(result.due_at))  # type: ignore[arg-type]


def result_of(result: Any) -> Any:
    if isinstance(result, Sent):
        return messages.Sent(result.id, result.is_duplicate)
    return error_answer(result) if isinstance(result, PenstockError) else acted(result)
