"""Single messages of a server elsewhere: looked at, and changed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.remote.answers import Acted, Changed, Message, MessagePage
from penstock.client.remote.transport import Transport
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct

_message = msgspec.json.Decoder(Message)
_acted = msgspec.json.Decoder(Acted)
_changed = msgspec.json.Decoder(Changed)
_page = msgspec.json.Decoder(MessagePage)


class RemoteMessages:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, message_id: str) -> Message:
        """Live, or from history; raises MessageNotFound."""
        return _message.decode(self._transport.call("GET", _path(message_id)).body)

    def browse(
        self,
        queue: str,
        *,
        state: State | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        **where: str | datetime | None,
    ) -> MessagePage:
        """A page of a queue's messages; changes nothing.

        `where`: kind, tag, group, entity_id, sent_from, sent_before.  With one of these a page may
        be short, or empty, and have a next one.
        """
        wanted = {"state": state, "limit": limit, "cursor": cursor, **where}
        query = urlencode({name: _said(v) for name, v in wanted.items() if v is not None})
        path = f"/v1/queues/{quote(queue, safe='')}/messages?{query}"
        return _page.decode(self._transport.call("GET", path).body)

    def change_many(
        self,
        queue: str,
        act: BulkAct,
        *,
        ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        reason: str | None = None,
        due_at: datetime | None = None,
        delay_ms: int | None = None,
        is_dry_run: bool = False,
        is_running_ok: bool = False,
    ) -> Changed:
        """Act by hand on all that fit, or only count them."""
        said: dict[str, object] = {"ids": ids, "where": where, "reason": reason, "due_at": due_at}
        said["delay_ms"] = delay_ms
        body: dict[str, object] = {"act": act, "is_dry_run": is_dry_run}
        if is_running_ok:  # servers before this flag refuse it
            body["is_running_ok"] = True
        body |= {name: value for name, value in said.items() if value is not None}
        path = f"/v1/queues/{quote(queue, safe='')}/messages/bulk"
        return _changed.decode(self._transport.call("POST", path, body=body).body)

    def complete(self, message_id: str, *, reason: str | None = None) -> Acted:
        return self._act(message_id, "complete", reason)

    def cancel(
        self, message_id: str, *, reason: str | None = None, is_running_ok: bool = False
    ) -> Acted:
        """`is_running_ok`: also one that is leased, whose lease holder is fenced."""
        return self._act(message_id, "cancel", reason, is_running_ok=is_running_ok)

    def bury(
        self, message_id: str, *, reason: str | None = None, is_running_ok: bool = False
    ) -> Acted:
        return self._act(message_id, "bury", reason, is_running_ok=is_running_ok)

    def redrive(self, message_id: str) -> Acted:
        return self._act(message_id, "redrive", None)

    def reschedule(
        self, message_id: str, due_at: datetime | None = None, *, delay_ms: int | None = None
    ) -> Acted:
        """Another due date for a message that nobody has claimed yet, or a time from now."""
        body = {"due_at": due_at} if delay_ms is None else {"delay_ms": delay_ms}
        answer = self._transport.call("PATCH", _path(message_id), body=body, is_safe=True)
        return _acted.decode(answer.body)

    def _act(
        self, message_id: str, verb: str, reason: str | None, *, is_running_ok: bool = False
    ) -> Acted:
        body: dict[str, object] = {} if reason is None else {"reason": reason}
        if is_running_ok:
            body["is_running_ok"] = True
        answer = self._transport.call("POST", f"{_path(message_id)}/{verb}", body=body)
        return _acted.decode(answer.body)


def _said(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _path(message_id: str) -> str:
    return f"/v1/messages/{quote(message_id, safe='')}"
