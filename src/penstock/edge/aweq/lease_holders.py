"""Whose checkout a DELETE means.  AweQ's carries a key only, and a key does not say who asks.

A message that was handed out once leaves no doubt: only that checkout can be meant.  From the
second time on a DELETE may come late, from somebody whose checkout has run out; it counts only when
it comes from the consumer that holds the message now.  Consumers are told apart by the header
X-Aweq-Consumer, or without it by their address.
"""

from __future__ import annotations

from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lifecycle import Message, State
from penstock.edge.server.request import Request

HEADER = b"x-aweq-consumer"
MOST_CHARS = 200
_NAMED = "aweq:"
_UNNAMED = "aweq@"


def consumer(request: Request) -> str:
    """Who asks, as it stands in `leased_by`."""
    name = request.headers.get(HEADER, b"").decode("latin-1")
    if len(name) > MOST_CHARS:
        raise InvalidRequest(f"X-Aweq-Consumer takes at most {MOST_CHARS} characters.")
    return f"{_NAMED}{name}" if name else f"{_UNNAMED}{request.client}"


def is_meant(message: Message, *, queue_no: int, asked_by: str) -> bool:
    """Does a DELETE by this consumer end the lease that is on the message now?"""
    if message.state is not State.LEASED or message.queue_no != queue_no:
        return False
    held_by = message.leased_by or ""
    if not held_by.startswith((_NAMED, _UNNAMED)):
        return False  # claimed through another API, whose receipts are not ours to replace
    return message.lease_no == 1 or held_by == asked_by
