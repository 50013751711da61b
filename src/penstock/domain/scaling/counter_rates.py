"""Rates per second from growing counters, by their growth since the last reading."""

from __future__ import annotations

import msgspec

_SHORTEST_MS = 500  # over a shorter time a rate is meaningless


class CounterReading(msgspec.Struct, frozen=True):
    counter_owner: object  # a new owner starts over
    at: int
    consumed: int
    sent: int
    consume_rate: float = 0.0
    publish_rate: float = 0.0


def measure(
    last: CounterReading | None, counter_owner: object, *, consumed: int, sent: int, now: int
) -> CounterReading:
    """The first reading has no rate yet."""
    if last is None or last.counter_owner != counter_owner:
        return CounterReading(counter_owner, now, consumed, sent)
    if now - last.at < _SHORTEST_MS:
        return last
    seconds = (now - last.at) / 1000
    return CounterReading(
        counter_owner,
        now,
        consumed,
        sent,
        consume_rate=max(consumed - last.consumed, 0) / seconds,
        publish_rate=max(sent - last.sent, 0) / seconds,
    )
