"""Claims whose client disconnects before their answer is there."""

from __future__ import annotations

import asyncio

from penstock.ports.store import Claimed
from penstock.ports.ticket import Ticket
from penstock.services.messages import ClaimOptions, MessageService


async def await_claim(
    ticket: Ticket[Claimed], options: ClaimOptions, messages: MessageService
) -> Claimed:
    """The answer; if the task is cancelled, the messages are released when the answer comes."""
    try:
        return await ticket
    except asyncio.CancelledError:
        if options.get("claim_key") is None:  # otherwise the client can repeat the claim
            ticket.then(lambda answer: _release(answer, messages))
        raise


def _release(answer: Claimed | BaseException, messages: MessageService) -> None:
    if isinstance(answer, Claimed) and answer.messages:
        messages.release([message for message, _ in answer.messages])
