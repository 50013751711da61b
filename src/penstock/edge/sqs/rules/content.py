"""Rules for the values of a request and for batches: sizes, ids, and numbers with their ranges.

Bodies are checked in body.py, message attributes in message_attributes.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from penstock.edge.aws.errors import AwsError, invalid_parameter, invalid_value
from penstock.edge.sqs import errors
from penstock.edge.sqs.wire.model import BatchResultErrorEntry

MAX_BYTES = 1024 * 1024  # limit of a message, and of a whole batch
LONGEST_DELAY = 900
LONGEST_WAIT = 20
LONGEST_VISIBILITY = 43_200
MAX_RECEIVED = 10

# AWS's sequence numbers have 20 digits, and more than 64 bits.
_FIRST_SEQUENCE_NUMBER = 18_850_000_000_000_000_000

_PUNCTUATED = re.compile(r"[!-~]{1,128}")  # letters, digits and punctuation of ASCII


def too_large(most: int) -> AwsError:
    """`most`: the queue's MaximumMessageSize, for body and message attributes together."""
    return invalid_parameter(
        f"One or more parameters are invalid. Reason: Message must be shorter than {most} bytes."
    )


def entry_too_large(most: int) -> AwsError:
    """The same for an entry of a batch."""
    return invalid_parameter(
        "One or more parameters cannot be validated. "
        f"Reason: Message must be shorter than {most} bytes."
    )


def sequence_number(message_no: int) -> str:
    return str(_FIRST_SEQUENCE_NUMBER + message_no)


def check_id(parameter: str, value: str) -> None:
    if not _PUNCTUATED.fullmatch(value):
        raise invalid_value(
            value,
            parameter,
            f"{parameter} can only include alphanumeric and punctuation characters. "
            "1 to 128 in length.",
        )


def check_delay(seconds: int) -> None:
    if not 0 <= seconds <= LONGEST_DELAY:
        # AWS repeats the name in this text only.
        reason = f"DelaySeconds must be >= 0 and <= {LONGEST_DELAY}."
        raise invalid_value(seconds, "DelaySeconds", reason)


def check_visibility_timeout(seconds: int) -> None:
    if not 0 <= seconds <= LONGEST_VISIBILITY:
        text = f"Must be >= 0 and <= {LONGEST_VISIBILITY}, if"
        raise _out_of_range(seconds, "VisibilityTimeout", text)


def check_wait_time(seconds: int) -> None:
    if not 0 <= seconds <= LONGEST_WAIT:
        raise _out_of_range(seconds, "WaitTimeSeconds", f"Must be >= 0 and <= {LONGEST_WAIT}, if")


def check_max_messages(count: int) -> None:
    if not 1 <= count <= MAX_RECEIVED:
        text = f"Must be between 1 and {MAX_RECEIVED}, if"
        raise _out_of_range(count, "MaxNumberOfMessages", text)


def check_max_results(count: int, *, most: int) -> None:
    if not 1 <= count <= most:
        raise _out_of_range(count, "MaxResults", f"Must be between 1 and {most}, if")


def not_for_this_queue_type(value: object, parameter: str) -> AwsError:
    """Reject a delay on a FIFO queue, or a deduplication or attempt id on a standard queue."""
    reason = "The request include parameter that is not valid for this queue type."
    return invalid_value(value, parameter, reason)


def no_deduplication_id() -> AwsError:
    return invalid_parameter(
        "The queue should either have ContentBasedDeduplication enabled or "
        "MessageDeduplicationId provided explicitly"
    )


def _out_of_range(value: int, parameter: str, rule: str) -> AwsError:
    return invalid_value(value, parameter, f"{rule} provided.")


MAX_ENTRIES = 10
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class BatchEntry(Protocol):
    @property
    def Id(self) -> str | None: ...  # noqa: N802


E = TypeVar("E", bound=BatchEntry)
D = TypeVar("D")


def check_entries(entries: Sequence[E] | None, kind: type[E]) -> Sequence[E]:
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


def check_batch_size(size: int) -> None:
    """Check the total size of all entries, regardless of the queue's limit."""
    if size > MAX_BYTES:
        raise errors.batch_request_too_long(size, most=MAX_BYTES)


def split_results(
    entries: Sequence[E], results: Sequence[AwsError | None], done: Callable[[str], D]
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


def failed(entry_id: str, error: AwsError) -> BatchResultErrorEntry:
    return BatchResultErrorEntry(entry_id, error.sender, error.code, error.message)


def _first_without_id(entries: Sequence[BatchEntry]) -> int:
    return next(n for n, entry in enumerate(entries, start=1) if entry.Id is None)
