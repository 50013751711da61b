"""Rates per second from growing counters, by their growth since the last reading."""

from __future__ import annotations

import msgspec

_SHORTEST_MS = 500  # over a shorter time a rate is meaningless


class Measured(msgspec.Struct, frozen=True):
    counted: object  # the owner of the counters; a new owner starts over
    at: int
    consumed: int
    sent: int
    consume_rate: float = 0.0
    publish_rate: float = 0.0


def measure(
    last: Measured | None, counted: object, *, consumed: int, sent: int, now: int
) -> Measured:
    """The first reading has no rate yet."""
    if last is None or last.counted != counted:
        return Measured(counted, now, consumed, sent)
    if now - last.at < _SHORTEST_MS:
        return last
    seconds = (now - last.at) / 1000
    return Measured(
        counted,
        now,
        consumed,
        sent,
        consume_rate=max(consumed - last.consumed, 0) / seconds,
        publish_rate=max(sent - last.sent, 0) / seconds,
    )
