"""Rates: at most a number of messages per period, with a burst.

A bucket earns credit as time passes and spends it on messages; it saves at most a burst.  So a rate
holds however often, and by whichever node, it is checked: in any `t` milliseconds at most
`burst + limit · t / per_ms` messages.  Credit is an integer: a message costs `per_ms`, a
millisecond earns `limit`.  Pure: time comes in as a value.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from penstock.domain.described import about
from penstock.domain.limits import DAY, SECOND, check_range

MAX_LIMIT = 1_000_000
MAX_PER_MS = 366 * DAY


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, about("How many messages per period.")]
    per_ms: Annotated[int, about("The length of the period.")] = SECOND
    burst: Annotated[int, about("How many may be claimed at once after a pause.")] = 1


class Bucket(msgspec.Struct, frozen=True):
    credit: int
    credited_at: int  # when the credit was last computed


def check_rate(name: str, rate: Rate | None, *, most_burst: int) -> None:
    """Raises InvalidRequest for the first value out of range."""
    if rate is None:
        return
    check_range(f"{name}.limit", rate.limit, 1, MAX_LIMIT)
    check_range(f"{name}.per_ms", rate.per_ms, 1, MAX_PER_MS)
    check_range(f"{name}.burst", rate.burst, 1, most_burst)


def full(rate: Rate, *, now: int) -> Bucket:
    return Bucket(rate.burst * rate.per_ms, now)


def credit(bucket: Bucket, rate: Rate, *, now: int) -> int:
    earned = max(0, now - bucket.credited_at) * rate.limit
    return min(bucket.credit + earned, rate.burst * rate.per_ms)


def available(bucket: Bucket, rate: Rate, *, now: int) -> int:
    """How many messages may be claimed now."""
    return max(0, credit(bucket, rate, now=now) // rate.per_ms)


def available_at(bucket: Bucket, rate: Rate, count: int, *, now: int) -> int:
    """When `count` messages, at most a burst, may be claimed together; `now` if at once."""
    missing = count * rate.per_ms - credit(bucket, rate, now=now)
    return now + max(0, -(-missing // rate.limit))


def spend(bucket: Bucket, rate: Rate, count: int, *, now: int) -> Bucket:
    left = credit(bucket, rate, now=now) - count * rate.per_ms
    return Bucket(left, max(bucket.credited_at, now))


def full_at(bucket: Bucket, rate: Rate) -> int:
    """When the bucket is full."""
    return available_at(bucket, rate, rate.burst, now=bucket.credited_at)
