"""Queue settings as programs write them: durations as "5m", back-offs as lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Required, TypedDict

import msgspec

from penstock.client.jobs.options import BackoffLike, backoff_of
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import (
    DedupScope,
    Ordering,
    QueueSettings,
    Redelivery,
    check_settings,
)
from penstock.domain.queue.rate import Rate


class RateOptions(TypedDict, total=False):
    """At most `limit` messages per period `per`, of which `burst` may come at once."""

    limit: Required[int]
    per: Duration  # default: a second
    burst: int  # default: one


RateLike = Rate | RateOptions | str  # "100/1m", or "100/1m,10" with a burst of 10


class QueueOptions(TypedDict, total=False):
    """Like `QueueSettings`, but fields that end in `_ms` there are durations here."""

    lease: Duration
    delay: Duration
    retention: Duration | None
    max_attempts: int | None
    dead_letter_queue: str | None
    ordering: Ordering | str
    redelivery: Redelivery | str
    backoff: BackoffLike
    max_body_bytes: int | None
    max_messages: int | None
    dedup_window: Duration
    dedup_by_content: bool
    dedup_scope: DedupScope | str
    wait: Duration | None
    labels: dict[str, str]
    annotations: dict[str, str]
    max_crashes: int | None
    max_leased: int | None
    max_leased_per_group: int | None
    rate: RateLike | None
    rate_per_group: RateLike | None
    is_fair: bool
    weights: dict[str, int]


def settings_of(name: str, given: QueueOptions) -> dict[str, Any]:
    """Convert to plain values in the form of `QueueSettings`; raises InvalidRequest."""
    known = QueueSettings.__struct_fields__
    plain: dict[str, Any] = {}
    for option, value in given.items():
        if f"{option}_ms" in known:
            plain[f"{option}_ms"] = None if value is None else as_ms(option, value)
        elif option == "backoff":
            plain[option] = backoff_of(value)  # type: ignore[arg-type]
        elif option in ("rate", "rate_per_group"):
            plain[option] = _rate_of(option, value)
        elif option in known:
            plain[option] = value
        else:
            raise InvalidRequest(f"queue {name!r}: there is no setting {option!r}")
    plain = msgspec.to_builtins(plain)
    try:
        check_settings(msgspec.convert(plain, QueueSettings), name=name)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"queue {name!r}: {error}") from None
    return plain


def _rate_of(name: str, given: object) -> object:
    """Convert to the form of `Rate`; raises InvalidRequest."""
    if isinstance(given, str):
        pace, comma, burst = given.partition(",")
        limit, slash, per = pace.partition("/")
        if not slash or not limit.strip().isdecimal() or (comma and not burst.strip().isdecimal()):
            raise InvalidRequest(f"{name} is {given!r}: say a rate such as '100/1m' or '100/1m,10'")
        rate: dict[str, object] = {"limit": int(limit), "per_ms": as_ms(f"{name}.per", per)}
        return rate | ({"burst": int(burst)} if comma else {})
    if isinstance(given, Mapping) and "per" in given:
        kept = {key: value for key, value in given.items() if key != "per"}
        return kept | {"per_ms": as_ms(f"{name}.per", given["per"])}
    return given
