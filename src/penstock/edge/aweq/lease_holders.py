"""Decides which lease an AweQ DELETE ends: it names only the message, not the consumer's checkout.

If a message was delivered once, the DELETE can only mean that checkout.  After a redelivery it may
come late, from a consumer whose checkout has expired, so it counts only if the present lease holder
sends it.  Consumers are identified by the header X-Aweq-Consumer, or else by their address.
"""

from __future__ import annotations

from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lifecycle import Message, State
from penstock.edge.server.request import Request

HEADER = b"x-aweq-consumer"
MAX_CHARS = 200
_NAMED = "aweq:"
_UNNAMED = "aweq@"


def consumer(request: Request) -> str:
    """The consumer of a request, in the form stored as `leased_by`."""
    name = request.headers.get(HEADER, b"").decode("latin-1")
    if len(name) > MAX_CHARS:
        raise InvalidRequest(f"X-Aweq-Consumer takes at most {MAX_CHARS} characters.")
    return f"{_NAMED}{name}" if name else f"{_UNNAMED}{request.client}"


def may_delete(message: Message, *, queue_no: int, asked_by: str) -> bool:
    """Whether a DELETE by this consumer ends the present lease of the message."""
    if message.state is not State.LEASED or message.queue_no != queue_no:
        return False
    held_by = message.leased_by or ""
    if not held_by.startswith((_NAMED, _UNNAMED)):
        return False  # claimed through another API, which requires a receipt
    return message.lease_no == 1 or held_by == asked_by
