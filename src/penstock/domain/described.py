"""Descriptions and ranges of fields, which documents, schemas and error texts are derived from."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from msgspec import Meta


def about(text: str, **bounds: Any) -> Meta:
    """Describe a field; `bounds` as in msgspec's Meta."""
    return Meta(description=text, **bounds)


def setting(default: object, text: str, low: int | None = None, high: int | None = None) -> Any:
    """A field of a dataclass that operators can set: its default, description and range."""
    return field(default=default, metadata={"setting": Meta(description=text, ge=low, le=high)})
