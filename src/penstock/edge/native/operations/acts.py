"""Acts on leases, one or several; without a task where the key is for all queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.edge.native import wire, wire_in
from penstock.edge.native.operations.results import check_batch, results
from penstock.edge.server.errors import error_response
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.directory import Directory
from penstock.services.messages import Messages

_act = msgspec.json.Decoder(wire_in.ActIn)
_acts = msgspec.json.Decoder(wire_in.ActsIn)
_encode = msgspec.json.Encoder().encode
_NO_FIELDS = wire_in.ActIn()

# What each act is for, and a body that shows what it takes.
_ACTS: dict[Verb, tuple[str, object]] = {
    Verb.COMPLETE: ("The message is handled.", {"is_late_ok": False}),
    Verb.FAIL: (
        "This attempt did not work: try again later, or bury it when no attempt is left.",
        {"error": "the mail server does not answer", "retry_in_ms": 60_000},
    ),
    Verb.RELEASE: ("Give it back unhandled; the attempt does not count.", {"delay_ms": 0}),
    Verb.EXTEND: (
        "Hold it for longer, counted from now; tell that work begins, or how far it is.",
        {"lease_ms": 60_000, "progress": {"done": 10, "of": 100}},
    ),
    Verb.SNOOZE: (
        "Postpone it; the attempt does not count.",
        {"delay_ms": 3_600_000, "reason": "the shop is closed"},
    ),
    Verb.BURY: ("Give it up: it dies.", {"reason": "no such address"}),
    Verb.CANCEL: ("It will not be handled, on purpose.", {"reason": "the order was withdrawn"}),
    Verb.TIME_OUT: (
        "This attempt took too long: it dies, or is tried again if it retries timeouts.",
        {"error": "no answer within a minute"},
    ),
    Verb.CRASH: (
        "Its worker died: back in line, or dead when it has killed too many of them.",
        {"error": "killed by signal 9"},
    ),
}


class ActApi:
    def __init__(self, messages: Messages, directory: Directory, limits: Limits) -> None:
        self._messages = messages
        self._directory = directory
        self._limits = limits

    def routes(self) -> list[Route]:
        return [
            Route(
                method="POST",
                path="/v1/leases/batch",
                handler=self.act_batch,
                role=Role.CONSUME,
                name="actOnLeases",
                scope=Scope.NAMED,
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
                    name=_name(verb),
                    scope=Scope.NAMED,
                    summary=summary,
                    takes=wire_in.act_body(verb),
                    example=example,
                    gives=wire.ActedOut,
                )
                for verb, (summary, example) in _ACTS.items()
            ),
        ]

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
        check_batch(len(wanted), self._limits)
        planned = [await self._plan_act(request, act) for act in wanted]
        acts = [plan for plan in planned if isinstance(plan, LeaseAct)]
        answers = await self._messages.act(acts) if acts else []
        return json_response(wire.ActResultsOut(results(planned, answers)))

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
            case Verb.FAIL | Verb.TIME_OUT | Verb.CRASH:
                return self._messages.plan(lease, verb, delay_ms=act.retry_in_ms, text=act.error)
            case Verb.EXTEND:
                progress = None if act.progress is None else _encode(act.progress).decode()
                return self._messages.plan(
                    lease,
                    verb,
                    delay_ms=act.lease_ms,
                    is_late_ok=bool(act.is_late_ok),
                    is_start=bool(act.is_start),
                    progress=progress,
                )
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


def _name(verb: Verb) -> str:
    first, *others = verb.value.split("_")
    return "".join([first, *(part.capitalize() for part in others), "Message"])


def _acted(answer: Any) -> Response:
    if isinstance(answer, list):
        answer = answer[0]
    if isinstance(answer, PenstockError):
        return error_response(answer)
    return json_response(wire.acted_out(answer))
