"""Documents: texts that are kept, read and replaced as a whole, such as the rules of routes."""

from __future__ import annotations

import msgspec


class Document(msgspec.Struct, frozen=True):
    """The fields stand in the order of the columns."""

    name: str
    text: str
    version: int  # grows with every change, also over a removal, so that caches know
    changed_at: int


class Latest(msgspec.Struct, frozen=True):
    """What is known of a document, whether it is there or not."""

    text: str | None  # None: it was removed, or never there
    version: int  # grows with every change; 0: it was never there
