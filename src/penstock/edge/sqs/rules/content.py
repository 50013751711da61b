"""Rules for the values of a request: sizes, ids, and numbers with their ranges.

Bodies are checked in body.py, message attributes in message_attributes.py.
"""

from __future__ import annotations

import re

from penstock.edge.sqs.errors import SqsError, invalid_parameter, invalid_value

MAX_BYTES = 1024 * 1024  # limit of a message, and of a whole batch
LONGEST_DELAY = 900
LONGEST_WAIT = 20
LONGEST_VISIBILITY = 43_200
MAX_RECEIVED = 10

_PUNCTUATED = re.compile(r"[!-~]{1,128}")  # letters, digits and punctuation of ASCII


def too_large(most: int) -> SqsError:
    """`most`: the queue's MaximumMessageSize, for body and message attributes together."""
    return invalid_parameter(
        f"One or more parameters are invalid. Reason: Message must be shorter than {most} bytes."
    )


def entry_too_large(most: int) -> SqsError:
    """The same for an entry of a batch."""
    return invalid_parameter(
        "One or more parameters cannot be validated. "
        f"Reason: Message must be shorter than {most} bytes."
    )


def check_group_id(group_id: str) -> None:
    _check_id("MessageGroupId", group_id)


def check_deduplication_id(deduplication_id: str) -> None:
    _check_id("MessageDeduplicationId", deduplication_id)


def check_attempt_id(attempt_id: str) -> None:
    _check_id("ReceiveRequestAttemptId", attempt_id)


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


def not_for_this_queue_type(value: object, parameter: str) -> SqsError:
    """Reject a delay on a FIFO queue, or a deduplication or attempt id on a standard queue."""
    reason = "The request include parameter that is not valid for this queue type."
    return invalid_value(value, parameter, reason)


def no_deduplication_id() -> SqsError:
    return invalid_parameter(
        "The queue should either have ContentBasedDeduplication enabled or "
        "MessageDeduplicationId provided explicitly"
    )


def _out_of_range(value: int, parameter: str, rule: str) -> SqsError:
    return invalid_value(value, parameter, f"{rule} provided.")


def _check_id(parameter: str, value: str) -> None:
    if not _PUNCTUATED.fullmatch(value):
        raise invalid_value(
            value,
            parameter,
            f"{parameter} can only include alphanumeric and punctuation characters. "
            "1 to 128 in length.",
        )
