"""Send one message or a batch.

A single message needs neither a task nor a coroutine: the store's callback sends the response.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import msgspec

from penstock.api import messages
from penstock.domain.errors import InvalidRequest, PenstockError, QueueNotFound
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.edge.native.bind import route_of
from penstock.edge.server.errors import ErrorAnswer, error_answer, error_response, unexpected
from penstock.edge.server.request import Request, Respond, Response, decode, json_response
from penstock.edge.server.router import SENDS, HttpRoute
from penstock.operations.drafts import draft_of
from penstock.operations.paging import check_batch
from penstock.ports.store import Sent
from penstock.ports.ticket import DependentTicket, Ticket
from penstock.ports.unit_of_work import await_steps
from penstock.services.messages import MessageService


class _ValidDrafts(msgspec.Struct, forbid_unknown_fields=True):
    """A batch of valid drafts only, decoded in one pass."""

    messages: list[messages.Draft]


_draft = msgspec.json.Decoder(messages.Draft)
_drafts = msgspec.json.Decoder(messages.Drafts)
_valid_drafts = msgspec.json.Decoder(_ValidDrafts)


class SendApi:
    def __init__(self, messages: MessageService, limits: Limits) -> None:
        self._messages = messages
        self._limits = limits

    def routes(self) -> list[HttpRoute]:
        return [
            route_of(messages.SEND, self.send, order=SENDS),
            route_of(messages.SEND_BATCH, self.send_batch),
        ]

    def send(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        draft, queue = draft_of(decode(_draft, request.body)), request.params["queue"]
        ticket = self._messages.send_to(queue, [draft])
        if isinstance(ticket, DependentTicket):
            # The queue is loaded first: messages that are pipelined behind must not overtake.
            return self._send_later(queue, ticket)
        ticket.then(lambda answers: respond(self._send_response(queue, answers)))
        return None

    async def _send_later(self, queue: str, ticket: Ticket[list[Sent | PenstockError]]) -> Response:
        try:
            return self._send_response(queue, await ticket)
        except QueueNotFound as error:
            raise self._messages.error_of(queue, error) from None

    def _send_response(self, queue: str, answers: Any) -> Response:
        answer = answers[0] if isinstance(answers, list) else answers
        if isinstance(answer, Sent):
            return json_response(_result(answer), 201)
        if isinstance(answer, PenstockError):
            return error_response(self._messages.error_of(queue, answer))
        return unexpected(answer)

    async def send_batch(self, request: Request, respond: Respond) -> Response:
        drafts = _read_batch(request.body)
        check_batch(len(drafts), self._limits)
        answers = await await_steps(self._messages.send_each(request.params["queue"], drafts))
        return json_response(messages.SendResults([_result(answer) for answer in answers]))


def _read_batch(body: bytes) -> list[Draft | PenstockError]:
    try:
        return [_read(draft) for draft in _valid_drafts.decode(body).messages]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return [_read(raw) for raw in decode(_drafts, body).messages]


def _read(given: messages.Draft | msgspec.Raw) -> Draft | PenstockError:
    try:
        return draft_of(decode(_draft, given) if isinstance(given, msgspec.Raw) else given)
    except InvalidRequest as error:
        return error


def _result(answer: Sent | PenstockError) -> messages.Sent | ErrorAnswer:
    if isinstance(answer, PenstockError):
        return error_answer(answer)
    return messages.Sent(answer.id, answer.is_duplicate)
