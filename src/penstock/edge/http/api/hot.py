"""The hot operations: send, claim, act on a lease.

Each has a way without any task or coroutine: decode, hand to the store, answer when it calls back.
The slower way is taken only when the queue is not known yet, or when a claim has to wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from penstock.domain import access
from penstock.domain.access import Role
from penstock.domain.draft import NewMessage
from penstock.domain.errors import (
    ClaimNotRepeatable,
    InvalidRequest,
    PenstockError,
    QueueFull,
    QueueNotFound,
    TooManyWaiting,
)
from penstock.domain.lease import Lease, LeaseAct, Verb
from penstock.domain.limits import Limits
from penstock.domain.queue import Queue
from penstock.edge.http import wire, wire_in
from penstock.edge.http.errors import error_answer, error_response
from penstock.edge.http.request import Request, Respond, Response, json_response
from penstock.edge.http.router import Route
from penstock.edge.instants import to_text
from penstock.edge.waiting import WaitingRoom
from penstock.ports.store import Claimed, Sent
from penstock.services.directory import Directory
from penstock.services.messages import Messages

_draft = msgspec.json.Decoder(wire_in.DraftIn)
_claim = msgspec.json.Decoder(wire_in.ClaimIn)
_act = msgspec.json.Decoder(wire_in.ActIn)
_acts = msgspec.json.Decoder(wire_in.ActsIn)
_NO_FIELDS = wire_in.ActIn()

# What each act is for, and a body that shows what it takes.
_ACTS: dict[Verb, tuple[str, object]] = {
    Verb.COMPLETE: ("The message is handled.", {"is_late_ok": False}),
    Verb.FAIL: (
        "This attempt did not work: try again later, or bury it when no attempt is left.",
        {"error": "the mail server does not answer", "retry_in_ms": 60_000},
    ),
    Verb.RELEASE: ("Give it back unhandled; the attempt does not count.", {"delay_ms": 0}),
    Verb.EXTEND: ("Hold it for longer, counted from now.", {"lease_ms": 60_000}),
    Verb.SNOOZE: ("Postpone it; the attempt does not count.", {"delay_ms": 3_600_000}),
    Verb.BURY: ("Give it up: it dies.", {"reason": "no such address"}),
    Verb.CANCEL: ("It will not be handled, on purpose.", {"reason": "the order was withdrawn"}),
}


class Hot:
    def __init__(
        self, messages: Messages, directory: Directory, room: WaitingRoom, limits: Limits
    ) -> None:
        self._messages = messages
        self._directory = directory
        self._room = room
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
            Route(
                method="POST",
                path=f"{queue}/claims",
                handler=self.claim,
                role=Role.CONSUME,
                name="claimMessages",
                summary="Lease messages; waits up to wait_ms for the first one.",
                takes=wire_in.ClaimIn,
                example={"limit": 10, "wait_ms": 1_000, "claimed_by": "worker-1"},
                refuses=(ClaimNotRepeatable, TooManyWaiting),
                gives=wire.ClaimedOut,
            ),
            Route(
                method="POST",
                path="/v1/leases/batch",
                handler=self.act_batch,
                role=Role.CONSUME,
                name="actOnLeases",
                summary="Several acts on leases in one transaction; each has its own result.",
                takes=wire_in.ActsIn,
                example={"acts": [{"receipt": "$RECEIPT", "act": "complete"}]},
                gives=wire.ActResultsOut,
            ),
            *(
                Route(
                    method="POST",
                    path="/v1/leases/{receipt}/" + verb.value,
                    handler=self._act_handler(verb),
                    role=Role.CONSUME,
                    name=f"{verb.value}Message",
                    summary=summary,
                    takes=wire_in.act_body(verb),
                    example=example,
                    gives=wire.ActedOut,
                )
                for verb, (summary, example) in _ACTS.items()
            ),
        ]

    # --- send ---

    def send(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        draft = wire_in.decode(_draft, request.body).draft()
        queue = self._directory.cached(request.params["queue"])
        if queue is None:
            return self._send_unknown(request, respond)
        ticket = self._messages.send([self._messages.draft(queue, draft)])
        ticket.then(lambda answer: respond(self._sent(queue, answer)))
        return None

    async def _send_unknown(self, request: Request, respond: Respond) -> Response:
        queue = await self._directory.load_to_send(request.params["queue"])
        draft = wire_in.decode(_draft, request.body).draft()
        return self._sent(queue, await self._messages.send([self._messages.draft(queue, draft)]))

    def _sent(self, queue: Queue, answer: Any) -> Response:
        if isinstance(answer, list):
            answer = answer[0]
        if isinstance(answer, Sent):
            return json_response(wire.sent_out(answer), 201)
        return self._refusal(answer, queue)

    def send_batch(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        drafts = wire_in.drafts(request.body)
        self._check_batch(len(drafts))
        queue = self._directory.cached(request.params["queue"])
        if queue is None:
            return self._send_batch_unknown(request, drafts)
        planned = [self._plan_draft(queue, draft) for draft in drafts]
        new = [plan for plan in planned if isinstance(plan, NewMessage)]
        if not new:
            respond(_results(planned, []))
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
        return _results(planned, await self._messages.send(new) if new else [])

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
            return _results(planned, answers)
        return self._refusal(answers, queue)

    # --- claim ---

    def claim(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        wanted = wire_in.decode(_claim, request.body)
        if wanted.wait_ms is not None and not 0 <= wanted.wait_ms <= self._limits.max_wait_ms:
            raise InvalidRequest(f"wait_ms must be from 0 to {self._limits.max_wait_ms}")
        queue = self._directory.cached(request.params["queue"])
        if queue is None or self._wait_ms(queue, wanted):
            return self._claim_waiting(request, wanted)
        ticket = self._messages.claim(
            queue,
            limit=wanted.limit,
            lease_ms=wanted.lease_ms,
            claimed_by=wanted.claimed_by,
            in_a_row=wanted.in_a_row,
            claim_key=wanted.claim_key,
        )
        ticket.then(lambda answer: respond(self._claimed(queue, answer)))
        return None

    async def _claim_waiting(self, request: Request, wanted: wire_in.ClaimIn) -> Response:
        queue = await self.queue(request)
        claimed = await self._room.claim(
            queue,
            wait_ms=self._wait_ms(queue, wanted),
            limit=wanted.limit,
            lease_ms=wanted.lease_ms,
            claimed_by=wanted.claimed_by,
            in_a_row=wanted.in_a_row,
            claim_key=wanted.claim_key,
        )
        return self._claimed(queue, claimed)

    def _wait_ms(self, queue: Queue, wanted: wire_in.ClaimIn) -> int:
        if wanted.wait_ms is not None:
            return wanted.wait_ms
        return min(queue.settings.wait_ms or 0, self._limits.max_wait_ms)

    def _claimed(self, queue: Queue, answer: Any) -> Response:
        if not isinstance(answer, Claimed):
            return self._refusal(answer, queue)
        out = []
        for message, content in answer.messages:
            shown = wire.message_out(queue.name, message, content)
            shown.receipt = self._messages.receipt(message)
            shown.leased_until = to_text(message.due_at)
            if message.dead_from is not None:
                shown.dead_from = self._directory.known_name(message.dead_from)
            out.append(shown)
        return json_response(wire.ClaimedOut(out))

    # --- acts ---

    def _act_handler(self, verb: Verb) -> Callable[[Request, Respond], Awaitable[Response] | None]:
        def handle(request: Request, respond: Respond) -> Awaitable[Response] | None:
            lease = self._messages.read_receipt(request.params["receipt"])
            fields = wire_in.decode(_act, request.body) if request.body else _NO_FIELDS
            act = self._plan(lease, verb, fields)
            if not self._may(request, lease):
                return self._act_checked(request, act)
            ticket = self._messages.act([act])
            ticket.then(lambda answer: respond(_acted(answer)))
            return None

        return handle

    async def _act_checked(self, request: Request, act: LeaseAct) -> Response:
        await self._check(request, act.lease)
        return _acted(await self._messages.act([act]))

    def act_batch(self, request: Request, respond: Respond) -> Awaitable[Response]:
        return self._act_batch(request)

    async def _act_batch(self, request: Request) -> Response:
        wanted = wire_in.decode(_acts, request.body).acts
        self._check_batch(len(wanted))
        planned = [await self._plan_act(request, act) for act in wanted]
        acts = [plan for plan in planned if isinstance(plan, LeaseAct)]
        return _results(planned, await self._messages.act(acts) if acts else [])

    async def _plan_act(
        self, request: Request, act: wire_in.BatchActIn
    ) -> LeaseAct | PenstockError:
        try:
            lease = self._messages.read_receipt(act.receipt)
            if not self._may(request, lease):
                await self._check(request, lease)
            return self._plan(lease, act.act, act)
        except PenstockError as error:
            return error

    def _plan(self, lease: Lease, verb: Verb, act: wire_in.ActIn) -> LeaseAct:
        if act is not _NO_FIELDS:
            act.check(verb)
        match verb:
            case Verb.FAIL:
                return self._messages.plan(lease, verb, delay_ms=act.retry_in_ms, text=act.error)
            case Verb.EXTEND:
                late = bool(act.is_late_ok)
                return self._messages.plan(lease, verb, delay_ms=act.lease_ms, is_late_ok=late)
            case Verb.COMPLETE:
                return self._messages.plan(lease, verb, is_late_ok=bool(act.is_late_ok))
            case Verb.SNOOZE if act.delay_ms is None:
                raise InvalidRequest("snooze needs delay_ms")
            case _:
                return self._messages.plan(lease, verb, delay_ms=act.delay_ms, text=act.reason)

    def _may(self, request: Request, lease: Lease) -> bool:
        """Keys for all queues need no look-up of the queue's name."""
        return "*" in request.caller.queues

    async def _check(self, request: Request, lease: Lease) -> None:
        name = self._directory.known_name(lease.queue_no)
        if name is None:
            name = await self._directory.name_of(lease.queue_no)
        access.allow(request.caller, Role.CONSUME, name)

    # --- shared ---

    async def queue(self, request: Request) -> Queue:
        name = request.params["queue"]
        return self._directory.cached(name) or await self._directory.load(name)

    def _check_batch(self, size: int) -> None:
        if not 1 <= size <= self._limits.max_batch:
            raise InvalidRequest(f"a batch has 1 to {self._limits.max_batch} entries, not {size}")

    def _refusal(self, error: Any, queue: Queue) -> Response:
        if isinstance(error, QueueNotFound):
            self._directory.forget(queue.name)  # it was removed a moment ago
            error = QueueNotFound(queue.name)
        if isinstance(error, PenstockError):
            return error_response(error)
        raise error


def _acted(answer: Any) -> Response:
    if isinstance(answer, list):
        answer = answer[0]
    if isinstance(answer, PenstockError):
        return error_response(answer)
    return json_response(wire.acted_out(answer))


def _results(planned: Sequence[Any], answers: Sequence[Any]) -> Response:
    """The answers in the places of what was planned, refusals where there was none to be had."""
    left = iter(answers)
    results = [plan if isinstance(plan, PenstockError) else next(left) for plan in planned]
    return json_response({"results": [_result(result) for result in results]})


def _result(result: Any) -> Any:
    if isinstance(result, Sent):
        return wire.sent_out(result)
    return error_answer(result) if isinstance(result, PenstockError) else wire.acted_out(result)
