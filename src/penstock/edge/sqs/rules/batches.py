"""Rules for a batch as a whole, and the results of its entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from penstock.edge.sqs import errors
from penstock.edge.sqs.errors import SqsError
from penstock.edge.sqs.rules import content
from penstock.edge.sqs.wire.model import BatchResultErrorEntry

MAX_ENTRIES = 10
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class BatchEntry(Protocol):
    @property
    def Id(self) -> str | None: ...  # noqa: N802


E = TypeVar("E", bound=BatchEntry)
D = TypeVar("D")


def check(entries: Sequence[E] | None, kind: type[E]) -> Sequence[E]:
    """Return the entries; raises unless there are 1 to 10 with valid, distinct ids."""
    if not entries:
        raise errors.empty_batch(kind.__name__)
    if len(entries) > MAX_ENTRIES:
        raise errors.too_many_entries(len(entries), most=MAX_ENTRIES)
    ids = [entry.Id for entry in entries if entry.Id is not None]
    if len(ids) < len(entries):
        raise errors.missing_parameter(f"{kind.__name__}.{_first_without_id(entries)}.Id")
    if not all(map(_ID.fullmatch, ids)):
        raise errors.invalid_batch_entry_id()
    seen: set[str] = set()
    for entry_id in ids:
        if entry_id in seen:
            raise errors.batch_entry_ids_not_distinct(entry_id)
        seen.add(entry_id)
    return entries


def check_total(size: int) -> None:
    """Check the total size of all entries, regardless of the queue's limit."""
    if size > content.MAX_BYTES:
        raise errors.batch_request_too_long(size, most=content.MAX_BYTES)


def split_results(
    entries: Sequence[E], results: Sequence[SqsError | None], done: Callable[[str], D]
) -> tuple[list[D], list[BatchResultErrorEntry]]:
    """The successful and the failed entries; a result of None means success."""
    successful: list[D] = []
    refused: list[BatchResultErrorEntry] = []
    for entry, error in zip(entries, results, strict=True):
        if error is None:
            successful.append(done(entry.Id or ""))
        else:
            refused.append(failed(entry.Id or "", error))
    return successful, refused


def failed(entry_id: str, error: SqsError) -> BatchResultErrorEntry:
    return BatchResultErrorEntry(entry_id, error.sender, error.code, error.message)


def _first_without_id(entries: Sequence[BatchEntry]) -> int:
    return next(n for n, entry in enumerate(entries, start=1) if entry.Id is None)
