"""Sending, one message or several.

There is a way without any task or coroutine: decode, hand to the store, answer when it calls back.
The slower way is taken only when the queue is not known yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from penstock.domain.access.api_key import Role
from penstock.domain.errors import PenstockError, QueueFull
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft, NewMessage
from penstock.domain.queue.queue import Queue
from penstock.edge.native import wire, wire_in
from penstock.edge.native.operations.results import check_batch, refusal, results
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.ports.store import Sent
from penstock.services.directory import Directory
from penstock.services.messages import Messages


class SendApi:
    def __init__(self, messages: Messages, directory: Directory, limits: Limits) -> None:
        self._messages = messages
        self._directory = directory
        self._limits = limits

    def routes(self) -> list[Route]:
        queue = "/v1/queues/{queue}"
        return [
            Route(
                method="POST",
                path=f"{queue}/messages",
                handler=self.send,
                role=Role.PRODUCE,
                name="sendMessage",
                summary="Send a message; answered when it is on disk.",
                takes=wire_in.DraftIn,
                example={"body": {"to": "ada@example.org"}, "delay_ms": 0},
                refuses=(QueueFull,),
                gives=wire.SentOut,
                status=201,
            ),
            Route(
                method="POST",
                path=f"{queue}/messages/batch",
                handler=self.send_batch,
                role=Role.PRODUCE,
                name="sendMessages",
                summary="Send several messages in one transaction; each has its own result.",
                takes=wire_in.DraftsIn,
                example={"messages": [{"body": "one"}, {"body": "two", "priority": -1}]},
                gives=wire.SendResultsOut,
            ),
        ]

    # --- send ---

    def send(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        draft = wire_in.draft(request.body)
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
            return json_response(wire.sent_out(answer), 201)
        return refusal(answer, queue, self._directory)

    def send_batch(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        drafts = wire_in.drafts(request.body)
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
        self, request: Request, drafts: list[wire_in.DraftIn | PenstockError]
    ) -> Response:
        queue = await self._directory.load_to_send(request.params["queue"])
        planned = [self._plan_draft(queue, draft) for draft in drafts]
        new = [plan for plan in planned if isinstance(plan, NewMessage)]
        return _batch(planned, await self._messages.send(new) if new else [])

    def _plan_draft(
        self, queue: Queue, draft: wire_in.DraftIn | PenstockError
    ) -> NewMessage | PenstockError:
        try:
            if isinstance(draft, PenstockError):
                return draft
            return self._messages.draft(queue, draft.draft())
        except PenstockError as error:
            return error

    def _all_sent(self, queue: Queue, planned: Sequence[Any], answers: Any) -> Response:
        if isinstance(answers, list):
            return _batch(planned, answers)
        return refusal(answers, queue, self._directory)


def _batch(planned: Sequence[Any], answers: Sequence[Any]) -> Response:
    return json_response(wire.SendResultsOut(results(planned, answers)))
