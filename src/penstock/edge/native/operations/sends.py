"""Sending, one message or several.

There is a way without any task or coroutine: decode, hand to the store, answer when it calls back.
The slower way is taken only when the queue is not known yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from penstock.api import sends
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft, NewMessage
from penstock.domain.queue.queue import Queue
from penstock.edge.native.bind import route_of
from penstock.edge.native.operations.results import check_batch, refusal, results
from penstock.edge.native.wire_in import decode
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.drafts import draft_of
from penstock.ports.store import Sent
from penstock.services.directory import Directory
from penstock.services.messages import Messages


class _ValidDrafts(msgspec.Struct, forbid_unknown_fields=True):
    """A batch in which every draft is valid, decoded in one go."""

    messages: list[sends.Draft]


_draft = msgspec.json.Decoder(sends.Draft)
_drafts = msgspec.json.Decoder(sends.Drafts)
_valid_drafts = msgspec.json.Decoder(_ValidDrafts)


class SendApi:
    def __init__(self, messages: Messages, directory: Directory, limits: Limits) -> None:
        self._messages = messages
        self._directory = directory
        self._limits = limits

    def routes(self) -> list[Route]:
        return [route_of(sends.SEND, self.send), route_of(sends.SEND_BATCH, self.send_batch)]

    def send(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        draft = draft_of(decode(_draft, request.body))
        queue = self._directory.cached(request.params["queue"])
        if queue is None:
            return self._send_unknown(request, draft)
        ticket = self._messages.send([self._messages.draft(queue, draft)])
        ticket.then(lambda answer: respond(self._sent(queue, answer)))
        return None

    async def _send_unknown(self, request: Request, draft: Draft) -> Response:
        queue = await self._directory.load_to_send(request.params["queue"])
        return self._sent(queue, await self._messages.send([self._messages.draft(queue, draft)]))

    def _sent(self, queue: Queue, answer: Any) -> Response:
        if isinstance(answer, list):
            answer = answer[0]
        if isinstance(answer, Sent):
            return json_response(sends.Sent(answer.id, answer.is_duplicate), 201)
        return refusal(answer, queue, self._directory)

    def send_batch(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        drafts = _read_batch(request.body)
        check_batch(len(drafts), self._limits)
        queue = self._directory.cached(request.params["queue"])
        if queue is None:
            return self._send_batch_unknown(request, drafts)
        planned = [self._plan_draft(queue, draft) for draft in drafts]
        new = [plan for plan in planned if isinstance(plan, NewMessage)]
        if not new:
            respond(_batch(planned, []))
            return None
        ticket = self._messages.send(new)
        ticket.then(lambda answers: respond(self._all_sent(queue, planned, answers)))
        return None

    async def _send_batch_unknown(
        self, request: Request, drafts: list[sends.Draft | PenstockError]
    ) -> Response:
        queue = await self._directory.load_to_send(request.params["queue"])
        planned = [self._plan_draft(queue, draft) for draft in drafts]
        new = [plan for plan in planned if isinstance(plan, NewMessage)]
        return _batch(planned, await self._messages.send(new) if new else [])

    def _plan_draft(
        self, queue: Queue, draft: sends.Draft | PenstockError
    ) -> NewMessage | PenstockError:
        try:
            if isinstance(draft, PenstockError):
                return draft
            return self._messages.draft(queue, draft_of(draft))
        except PenstockError as error:
            return error

    def _all_sent(self, queue: Queue, planned: Sequence[Any], answers: Any) -> Response:
        if isinstance(answers, list):
            return _batch(planned, answers)
        return refusal(answers, queue, self._directory)


def _batch(planned: Sequence[Any], answers: Sequence[Any]) -> Response:
    return json_response(sends.SendResults(results(planned, answers)))


def _read_batch(body: bytes) -> list[sends.Draft | PenstockError]:
    try:
        return [*_valid_drafts.decode(body).messages]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return [_draft_or_error(raw) for raw in decode(_drafts, body).messages]


def _draft_or_error(raw: msgspec.Raw) -> sends.Draft | PenstockError:
    try:
        return decode(_draft, raw)
    except InvalidRequest as error:
        return error
