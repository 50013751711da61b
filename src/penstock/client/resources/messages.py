"""Look up, browse and change messages, as an operator does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from penstock.api import manual_acts, messages
from penstock.api.manual_acts import Bulk, Buried, Changed, End, Reason, Reschedule, Where
from penstock.api.messages import Acted, Browse, Message, Page
from penstock.client.channel import Channel
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct


class MessageClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def get(self, message_id: str) -> Message:
        """Return a message, live or from history; raises MessageNotFound."""
        return self._request(messages.GET, id=message_id)

    def browse(
        self,
        queue: str,
        *,
        state: State = State.READY,
        kind: str | None = None,
        tag: str | None = None,
        group: str | None = None,
        entity_id: str | None = None,
        sent_from: datetime | None = None,
        sent_before: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Return a page of a queue's messages; changes nothing.

        With a filter, a page may be short, or even empty, and still have a next one.
        """
        wanted = Browse(
            state=state,
            kind=kind,
            tag=tag,
            group=group,
            entity_id=entity_id,
            sent_from=sent_from,
            sent_before=sent_before,
            limit=limit,
            cursor=cursor,
        )
        return self._request(messages.BROWSE, query=wanted, queue=queue)

    def change_many(
        self,
        queue: str,
        act: BulkAct,
        *,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
        reason: str | None = None,
        due_at: datetime | None = None,
        delay_ms: int | None = None,
        is_dry_run: bool = False,
        is_running_ok: bool = False,
    ) -> Changed:
        """Act on all matching messages, or only count them."""
        wanted = Bulk(
            act=act,
            ids=None if ids is None else list(ids),
            where=where,
            reason=reason,
            due_at=due_at,
            delay_ms=delay_ms,
            is_dry_run=is_dry_run,
            is_running_ok=is_running_ok,
        )
        return self._request(manual_acts.BULK, wanted, queue=queue)

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
