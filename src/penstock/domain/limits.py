"""Upper bounds, checked before any work is done.  Server settings may change them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.domain.described import setting
from penstock.domain.errors import InvalidRequest, TooLarge

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

MIB = 1024 * 1024

NUL = "\x00"  # the one character that PostgreSQL cannot store in text
MAX_INSTANT = 253_402_300_799_999  # the last millisecond of the year 9999


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    max_body_bytes: int = setting(MIB, "maximum size of a body", 1, 64 * MIB)
    max_batch: int = setting(1_000, "maximum number of messages or acts in one request", 1, 100_000)
    max_batch_bytes: int = setting(12 * MIB, "maximum size of a request", 1, 1024 * MIB)
    max_claim: int = setting(1_000, "maximum number of messages in one claim or page", 1, 100_000)
    max_answer_bytes: int = setting(
        8 * MIB, "maximum total size of the bodies in one claim or page", MIB, 1024 * MIB
    )
    max_wait_ms: int = setting(
        20 * SECOND, "longest time that a claim may wait for messages", 0, HOUR
    )
    max_lease_ms: int = setting(12 * HOUR, "longest lease", 1, 30 * DAY)
    max_result_bytes: int = setting(256 * 1024, "maximum size of a result", 1, 64 * MIB)
    max_attributes: int = setting(32, "maximum number of attributes of a message", 0, 10_000)
    max_attribute_bytes: int = setting(
        8 * 1024, "maximum total size of a message's attributes", 0, MIB
    )
    max_step_bytes: int = setting(
        256 * 1024, "maximum size of the outcome of a durable step", 1, 64 * MIB
    )
    max_label_chars: int = setting(
        256, "maximum length of a kind, tag, group, dedup key and the like", 1, 1_024
    )
    max_error_chars: int = setting(4 * 1024, "length to which error texts are cut", 1, MIB)
    max_log_bytes: int = setting(
        64 * 1024, "how much of the log of one attempt is kept, as JSON", 0, 16 * MIB
    )
    max_waiting_claims: int = setting(
        10_000, "maximum number of claims that wait at the same time", 1, 1_000_000
    )
    max_waiting_results: int = setting(
        100_000, "maximum number of callers that wait for a message to end", 1, 1_000_000
    )
    max_listeners: int = setting(
        100, "maximum number of concurrent listeners to /v1/live", 0, 100_000
    )


DEFAULT_LIMITS = Limits()


def check_range(name: str, value: float | None, low: float, high: float) -> None:
    """Raise InvalidRequest if a value is given and out of range."""
    if value is not None and not low <= value <= high:
        raise InvalidRequest(f"{name} must be from {low} to {high}, not {value}")


def check_json_size(what: str, text: str, limits: Limits, name: str) -> None:
    """Raise TooLarge if JSON text is longer than the limit of this name."""
    most: int = getattr(limits, name)
    if len(text) * 4 <= most:  # no character takes more bytes
        return
    size = len(text.encode())
    if size > most:
        raise TooLarge(
            f"{what} has {size} bytes as JSON, more than limits.{name} ({most}): "
            "store it elsewhere and keep its place instead"
        )
