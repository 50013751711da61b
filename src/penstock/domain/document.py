"""Documents: texts that are stored, read and replaced as a whole, such as the rules of routes."""

from __future__ import annotations

import msgspec


class Document(msgspec.Struct, frozen=True):
    """Fields are in column order."""

    name: str
    text: str
    version: int  # grows with every change and survives a removal, so that caches notice
    changed_at: int


class Latest(msgspec.Struct, frozen=True):
    """The current state of a document, whether it exists or not."""

    text: str | None  # None: it was removed, or never existed
    version: int  # grows with every change; 0: it never existed
