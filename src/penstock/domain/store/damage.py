"""Damaged pages of a store."""

from __future__ import annotations

import msgspec


class DamagedPage(msgspec.Struct, frozen=True):
    page_no: int
    table: str | None = None  # None: unknown, or no longer in use
    index: str | None = None  # of the table; None: its rows
    first: int | None = None  # the numbers of the rows that may be on it
    last: int | None = None
    queues: tuple[str, ...] = ()  # as far as known
    is_correctable: bool = False  # one flipped bit: salvage loses nothing

    @property
    def text(self) -> str:
        what = (
            "an overflow page of a long row, or unused"
            if self.table is None
            else f"table {self.table}"
        )
        if self.index is not None:
            what += f", index {self.index}"
        if self.first is not None and self.last is not None:
            what += f", rows {self.first} to {self.last}"
        if self.queues:
            what += f", queues {', '.join(self.queues)}"
        if self.is_correctable:
            what += "; one flipped bit, which salvage corrects"
        return f"page {self.page_no} ({what})"


class Damage(msgspec.Struct, frozen=True):
    """Damage that a store has run into since it was opened."""

    pages: tuple[DamagedPage, ...] = ()  # empty: the search is still running

    @property
    def text(self) -> str:
        if not self.pages:
            return "a page of the store cannot be read"
        return "; ".join(page.text for page in self.pages)
