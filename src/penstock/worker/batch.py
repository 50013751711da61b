"""How the jobs of a chunk handler are gathered."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest

MAX_CHUNK = 500  # as many as one claim returns
By = Literal["group", "entity_id"]


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A handler with a batch gets many jobs in one call: `@app.job(batch=Batch(max=100))`.

    It is called when `max` jobs have come, or the first of them has waited for `wait`.  With `by`,
    all jobs of a call have the same group or entity_id.
    """

    max: int = 100
    wait: Duration = "1s"
    by: By | None = None

    @property
    def wait_ms(self) -> int:
        return as_ms("wait", self.wait)


def check_batch(batch: object, *, kind: str, timeout_ms: int | None) -> Batch | None:
    """Raises InvalidRequest for a batch that no worker could gather."""
    if batch is None:
        return None
    if not isinstance(batch, Batch):
        raise InvalidRequest(f"job {kind!r}: batch takes a Batch(…), not {batch!r}")
    if isinstance(batch.max, bool) or not isinstance(batch.max, int):
        raise InvalidRequest(f"job {kind!r}: max is a whole number, not {batch.max!r}")
    if not 1 <= batch.max <= MAX_CHUNK:
        raise InvalidRequest(f"job {kind!r}: max must be from 1 to {MAX_CHUNK}, not {batch.max}")
    if batch.by is not None and batch.by not in get_args(By):
        names = ", ".join(map(repr, get_args(By)))
        raise InvalidRequest(f"job {kind!r}: by is one of {names}, not {batch.by!r}")
    # A job that has not begun within half of its time limit is given back.
    if timeout_ms is not None and batch.wait_ms >= timeout_ms // 2:
        raise InvalidRequest(
            f"job {kind!r}: wait must be shorter than half of the timeout, or its jobs never run"
        )
    return batch
