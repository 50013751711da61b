"""The base class of the clients of resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from penstock.client.channel import Channel

Page = TypeVar("Page", bound=Any)
Item = TypeVar("Item")


class ResourceClient:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._request = channel.request


def items_of(
    page: Callable[[str | None], Page], items: Callable[[Page], Sequence[Item]]
) -> Iterator[Item]:
    """The items of all pages; `page` fetches the one at a cursor."""
    cursor: str | None = None
    while True:
        found = page(cursor)
        yield from items(found)
        cursor = found.next
        if cursor is None:
            return
