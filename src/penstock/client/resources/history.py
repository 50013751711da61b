"""Finished messages: search them, and look up one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypedDict, Unpack

from penstock.api import history
from penstock.api.history import Ending, Past, SearchHistory
from penstock.client.resources.resource import ResourceClient, items_of
from penstock.domain.message.lifecycle import State


class EndingFilter(TypedDict, total=False):
    """`from_at <= finished_at < to_at`"""

    queue: str | None
    kind: str | None
    tag: str | None
    entity_id: str | None
    outcome: State | None
    from_at: datetime | None
    to_at: datetime | None


class HistoryClient(ResourceClient):
    def search(self, *, page_size: int = 100, **wanted: Unpack[EndingFilter]) -> Iterator[Ending]:
        """Search finished messages, newest first; fetches further pages as the caller iterates."""
        return items_of(
            lambda cursor: self.page(limit=page_size, cursor=cursor, **wanted),
            lambda page: page.endings,
        )

    def page(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[EndingFilter]
    ) -> history.History:
        begin, end = _text(wanted.pop("from_at", None)), _text(wanted.pop("to_at", None))
        query = SearchHistory(from_=begin, to=end, limit=limit, cursor=cursor, **wanted)  # type: ignore[misc]
        return self._request(history.SEARCH, query=query)

    def of(self, message_id: str) -> Past:
        """The endings and the unfinished attempts of one message."""
        return self._request(history.GET, id=message_id)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds")
