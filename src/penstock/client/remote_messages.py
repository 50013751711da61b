"""Single messages of a server elsewhere: looked at, and changed by hand."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.answers import Acted, Message, MessagePage
from penstock.client.transport import Transport
from penstock.domain.message import State

_message = msgspec.json.Decoder(Message)
_acted = msgspec.json.Decoder(Acted)
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
    ) -> MessagePage:
        """A page of a queue's messages; changes nothing."""
        wanted = {"state": state, "limit": limit, "cursor": cursor}
        query = urlencode({name: v for name, v in wanted.items() if v is not None})
        path = f"/v1/queues/{quote(queue, safe='')}/messages?{query}"
        return _page.decode(self._transport.call("GET", path).body)

    def cancel(self, message_id: str, *, reason: str | None = None) -> Acted:
        return self._act(message_id, "cancel", reason)

    def bury(self, message_id: str, *, reason: str | None = None) -> Acted:
        return self._act(message_id, "bury", reason)

    def redrive(self, message_id: str) -> Acted:
        return self._act(message_id, "redrive", None)

    def reschedule(self, message_id: str, due_at: datetime) -> Acted:
        """Another due date for a message that nobody has claimed yet."""
        answer = self._transport.call(
            "PATCH", _path(message_id), body={"due_at": due_at}, is_safe=True
        )
        return _acted.decode(answer.body)

    def _act(self, message_id: str, verb: str, reason: str | None) -> Acted:
        body = {} if reason is None else {"reason": reason}
        answer = self._transport.call("POST", f"{_path(message_id)}/{verb}", body=body)
        return _acted.decode(answer.body)


def _path(message_id: str) -> str:
    return f"/v1/messages/{quote(message_id, safe='')}"
