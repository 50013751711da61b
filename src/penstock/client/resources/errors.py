"""Groups of errors of dead messages."""

from __future__ import annotations

from penstock.api import browsing
from penstock.api.browsing import ErrorGroups, ListErrors, RedriveErrors
from penstock.api.manual_acts import Changed
from penstock.client.resources.resource import ResourceClient


class ErrorClient(ResourceClient):
    def groups(self, *, queue: str | None = None) -> ErrorGroups:
        """Group the errors of dead messages; those with the most messages come first."""
        return self._request(browsing.LIST_ERRORS, query=ListErrors(queue=queue))

    def redrive(
        self, group_id: str, *, queue: str | None = None, is_dry_run: bool = False
    ) -> Changed:
        """Send the messages of a group back to the queues they died in, or only count them."""
        wanted = RedriveErrors(error=group_id, queue=queue, is_dry_run=is_dry_run)
        return self._request(browsing.REDRIVE_ERRORS, wanted)
