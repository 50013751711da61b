"""What a server elsewhere remembers of finished messages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypedDict, Unpack
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.remote.answers import Ending, EndingPage, Past
from penstock.client.remote.transport import Transport
from penstock.domain.message.lifecycle import State

_page = msgspec.json.Decoder(EndingPage)
_past = msgspec.json.Decoder(Past)


class HistoryFilter(TypedDict, total=False):
    """`from_at <= finished_at < to_at`"""

    queue: str | None
    kind: str | None
    tag: str | None
    entity_id: str | None
    outcome: State | None
    from_at: datetime | None
    to_at: datetime | None


class RemoteHistory:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def search(self, *, page_size: int = 100, **wanted: Unpack[HistoryFilter]) -> Iterator[Ending]:
        """Newest first, page by page, as far as the caller reads."""
        cursor: str | None = None
        while True:
            page = self.page(limit=page_size, cursor=cursor, **wanted)
            yield from page.endings
            cursor = page.next
            if cursor is None:
                return

    def page(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[HistoryFilter]
    ) -> EndingPage:
        names = {"from_at": "from", "to_at": "to"}
        asked: dict[str, object] = {"limit": limit, "cursor": cursor}
        for name, value in wanted.items():
            asked[names.get(name, name)] = _text(value) if isinstance(value, datetime) else value
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return _page.decode(self._transport.call("GET", f"/v1/history?{query}").body)

    def of(self, message_id: str) -> Past:
        """The endings and the failed attempts of one message."""
        path = f"/v1/history/{quote(message_id, safe='')}"
        return _past.decode(self._transport.call("GET", path).body)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
