"""`penstock messages show --logs`: what the attempts of a message have logged."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock.api.jobs.attempt_logs import LogLine
from penstock.domain.errors import MessageNotFound
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.kit.output import Output, display

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_EVERY_S = 1.0
_ENDED = (State.DONE, State.DEAD, State.CANCELLED)


def print_logs(server: Remote, message_id: str, out: Output, *, follow: bool) -> None:
    """With `follow`, until the message has ended."""
    cursor: str | None = None
    lease_no: int | None = None
    while True:
        # Asked before the lines, so that none is missed that was logged before the end.
        is_over = not follow or _has_ended(server, message_id)
        while True:
            found = server.attempt_logs.of(message_id, cursor=cursor)
            cursor = found.next
            if not found.lines:
                break
            for line in found.lines:
                if line.lease_no != lease_no and not out.json:
                    out.line(f"lease {line.lease_no}:")
                lease_no = line.lease_no
                out.result(line, _text(line))
        if is_over:
            return
        threading.Event().wait(_EVERY_S)


def _has_ended(server: Remote, message_id: str) -> bool:
    try:
        return server.messages.get(message_id).state in _ENDED
    except MessageNotFound:
        return True


def _text(line: LogLine) -> str:
    if line.level == "print":
        return f"{display(line.at)} {line.text}"
    return f"{display(line.at)} {line.level.upper()} {line.source}: {line.text}"
