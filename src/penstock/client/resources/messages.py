"""Look up, browse and change messages, as an operator does."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict, Unpack

from penstock.api import manual_acts, messages
from penstock.api.manual_acts import Bulk, Buried, Changed, End, Reason, Reschedule, Where
from penstock.api.messages import Acted, Browse, Message, Page
from penstock.client.resources.resource import ResourceClient
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct


class BulkOptions(TypedDict, total=False):
    """Which messages, by `ids` or `where`, and how."""

    ids: list[str] | None
    where: Where | None
    reason: str | None
    due_at: datetime | None
    delay_ms: int | None
    is_dry_run: bool
    is_running_ok: bool


class MessageFilter(TypedDict, total=False):
    kind: str | None
    tag: str | None
    group: str | None
    entity_id: str | None
    sent_from: datetime | None  # inclusive
    sent_before: datetime | None  # exclusive


class MessageClient(ResourceClient):
    def get(self, message_id: str) -> Message:
        """Return a message, live or from history; raises MessageNotFound."""
        return self._request(messages.GET, id=message_id)

    def browse(
        self,
        queue: str,
        *,
        state: State = State.READY,
        limit: int = 100,
        cursor: str | None = None,
        **wanted: Unpack[MessageFilter],
    ) -> Page:
        """Return a page of a queue's messages; changes nothing.

        With a filter, a page may be short, or even empty, and still have a next one.
        """
        query = Browse(state=state, limit=limit, cursor=cursor, **wanted)
        return self._request(messages.BROWSE, query=query, queue=queue)

    def change_many(
        self,
        queue: str,
        act: BulkAct,
        **options: Unpack[BulkOptions],
    ) -> Changed:
        """Act on all matching messages, or only count them."""
        return self._request(manual_acts.BULK, Bulk(act, **options), queue=queue)

    def complete(self, message_id: str, *, reason: str | None = None) -> Acted:
        return self._request(manual_acts.COMPLETE, Reason(reason), id=message_id)

    def cancel(
        self, message_id: str, *, reason: str | None = None, is_running_ok: bool = False
    ) -> Acted:
        """Cancel a message; `is_running_ok`: also a leased one, whose holder is fenced."""
        wanted = End(reason=reason, is_running_ok=is_running_ok)
        return self._request(manual_acts.CANCEL, wanted, id=message_id)

    def bury(
        self, message_id: str, *, reason: str | None = None, is_running_ok: bool = False
    ) -> Buried:
        wanted = End(reason=reason, is_running_ok=is_running_ok)
        return self._request(manual_acts.BURY, wanted, id=message_id)

    def redrive(self, message_id: str) -> Acted:
        return self._request(manual_acts.REDRIVE, id=message_id)

    def reschedule(
        self, message_id: str, due_at: datetime | None = None, *, delay_ms: int | None = None
    ) -> Acted:
        """Change when an unclaimed message is due: at an instant, or after a delay from now."""
        wanted = Reschedule(due_at=due_at, delay_ms=delay_ms)
        return self._request(manual_acts.RESCHEDULE, wanted, id=message_id)
