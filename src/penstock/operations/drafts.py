"""Drafts as clients send them, turned into those of the domain."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from penstock.api import sends
from penstock.domain.datetimes import parse_instant
from penstock.domain.message.draft import Draft
from penstock.operations.json_text import text_of

_FIELDS = frozenset(Draft.__struct_fields__)


def draft_of(given: sends.Draft) -> Draft:
    """Raises InvalidRequest."""
    values: dict[str, Any] = asdict(given)
    values["body"] = text_of(given.body)
    if given.due_at is not None:
        values["due_at"] = parse_instant("due_at", given.due_at)
    if given.expires_at is not None:
        values["expires_at"] = parse_instant("expires_at", given.expires_at)
    if type(given) is not sends.Draft:  # a notification or an event has fields of its own
        values = {name: value for name, value in values.items() if name in _FIELDS}
    return Draft(**values)
