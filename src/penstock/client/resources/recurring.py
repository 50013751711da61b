"""Recurring work: messages sent on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from penstock.api import recurring
from penstock.api.operation import PageQuery
from penstock.api.recurring import Count, NewRecurring, Preview, Recurring, Retire
from penstock.client.resources.resource import ResourceClient, items_of

Instants = list[datetime]  # inside the class `list` is a method
Names = list[str]


class RecurringClient(ResourceClient):
    """Methods that need an existing schedule raise ScheduleNotFound."""

    def put(self, name: str, wanted: NewRecurring) -> Recurring:
        """Create or change recurring work; an identical call changes nothing."""
        return self._request(recurring.PUT, wanted, schedule=name)

    def list(self) -> Iterator[Recurring]:
        """List all recurring work by name, page by page."""
        return items_of(
            lambda cursor: self._request(recurring.LIST, query=PageQuery(cursor=cursor)),
            lambda page: page.recurring,
        )

    def get(self, name: str) -> Recurring:
        return self._request(recurring.GET, schedule=name)

    def remove(self, name: str) -> None:
        self._request(recurring.REMOVE, schedule=name)

    def retire(self, owner: str, declared: Iterable[str]) -> Names:
        """Remove recurring work that the application no longer declares; returns the names."""
        wanted = Retire(owner=owner, declared=tuple(sorted(declared)))
        return self._request(recurring.RETIRE, wanted).retired

    def pause(self, name: str) -> Recurring:
        return self._request(recurring.PAUSE, schedule=name)

    def resume(self, name: str) -> Recurring:
        """Resume it; firings missed during the pause are not made up for."""
        return self._request(recurring.RESUME, schedule=name)

    def run(self, name: str) -> str:
        """Send it once now; returns the message's id."""
        return self._request(recurring.RUN, schedule=name).id

    def preview(self, name: str, *, count: int = 10) -> Instants:
        return self._request(recurring.PREVIEW, query=Count(count=count), schedule=name).instants

    def preview_rhythm(self, wanted: Preview) -> Instants:
        """Return the next firings of a rhythm that is not in use yet."""
        return self._request(recurring.PREVIEW_RHYTHM, wanted).instants
