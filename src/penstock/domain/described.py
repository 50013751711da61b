"""Descriptions and ranges of fields, which documents, schemas and error texts are derived from."""

from __future__ import annotations

from typing import Any

from msgspec import Meta


def about(text: str, **bounds: Any) -> Meta:
    """Describe a field; `bounds` as in msgspec's Meta."""
    return Meta(description=text, **bounds)


def within(low: int, high: int, text: str) -> Meta:
    """Describe a number from `low` to `high`."""
    return Meta(ge=low, le=high, description=text)
