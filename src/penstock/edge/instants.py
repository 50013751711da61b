"""Instants as ISO 8601 text in UTC, with milliseconds."""

from __future__ import annotations

from functools import lru_cache

from penstock.domain.datetimes import moment_of


@lru_cache(maxsize=4096)  # the messages of a batch share most of their instants
def to_text(instant: int) -> str:
    seconds, millis = divmod(instant, 1000)
    return f"{_second(seconds)}.{millis:03}Z"


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return moment_of(seconds * 1000).strftime("%Y-%m-%dT%H:%M:%S")
