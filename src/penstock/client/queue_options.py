"""The settings of a queue as a program says them: durations as "5m", back-offs as lists."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from penstock.client.options import BackoffLike, backoff_of
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.queue import (
    DedupScope,
    Ordering,
    QueueSettings,
    Redelivery,
    check_settings,
)


class QueueOptions(TypedDict, total=False):
    """As `QueueSettings`; what ends in `_ms` there is a duration here."""

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


def settings_of(name: str, given: QueueOptions) -> dict[str, Any]:
    """In the form of `QueueSettings`, as plain values; raises InvalidRequest."""
    known = QueueSettings.__struct_fields__
    plain: dict[str, Any] = {}
    for option, value in given.items():
        if f"{option}_ms" in known:
            plain[f"{option}_ms"] = None if value is None else as_ms(option, value)
        elif option == "backoff":
            plain[option] = backoff_of(value)  # type: ignore[arg-type]
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
