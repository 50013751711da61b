"""Acts on leases, single or in batches; without a task if the key covers all queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from penstock.api import leases
from penstock.api.leases import ActFields, Acts, BatchAct
from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.edge.native.bind import route_of
from penstock.edge.native.wire import acted, check_batch, decode, results
from penstock.edge.server.errors import error_response
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import HttpRoute
from penstock.services.directory import Directory
from penstock.services.messages import MessageService

_act = msgspec.json.Decoder(ActFields)
_acts = msgspec.json.Decoder(Acts)
_encode = msgspec.json.Encoder().encode
_NO_FIELDS = ActFields()


class ActApi:
    def __init__(self, messages: MessageService, directory: Directory, limits: Limits) -> None:
        self._messages = messages
        self._directory = directory
        self._limits = limits

    def routes(self) -> list[HttpRoute]:
        acts = leases.ACTS.items()
        return [
            route_of(leases.ACT_BATCH, self.act_batch),
            *(route_of(operation, self._act_handler(verb)) for verb, operation in acts),
        ]

    def _act_handler(self, verb: Verb) -> Callable[[Request, Respond], Awaitable[Response] | None]:
        def handle(request: Request, respond: Respond) -> Awaitable[Response] | None:
            lease = self._messages.read_receipt(request.params["receipt"])
            fields = decode(_act, request.body) if request.body else _NO_FIELDS
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
        wanted = decode(_acts, request.body).acts
        check_batch(len(wanted), self._limits)
        planned = [await self._plan_act(request, act) for act in wanted]
        acts = [plan for plan in planned if isinstance(plan, LeaseAct)]
        answers = await self._messages.act(acts) if acts else []
        return json_response(leases.ActResults(results(planned, answers)))

    async def _plan_act(self, request: Request, act: BatchAct) -> LeaseAct | PenstockError:
        try:
            lease = self._messages.read_receipt(act.receipt)
            if not self._may(request, lease):
                await self._check(request, lease)
            return self._plan(lease, act.act, act)
        except PenstockError as error:
            return error

    def _plan(self, lease: Lease, verb: Verb, act: ActFields) -> LeaseAct:
        if act is not _NO_FIELDS:
            _check_fields(verb, act)
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
                raise InvalidRequest("snooze requires delay_ms")
            case _:
                return self._messages.plan(lease, verb, delay_ms=act.delay_ms, text=act.reason)

    def _may(self, request: Request, lease: Lease) -> bool:
        """Whether the key covers all queues, so that the name of the queue is not needed."""
        return "*" in request.caller.queues

    async def _check(self, request: Request, lease: Lease) -> None:
        name = self._directory.known_name(lease.queue_no)
        if name is None:
            name = await self._directory.name_of(lease.queue_no)
        access.allow(request.caller, Role.CONSUME, name)


def _check_fields(verb: Verb, act: ActFields) -> None:
    """Raises InvalidRequest for a field that the verb does not take."""
    for name in ActFields.__struct_fields__:
        if getattr(act, name) is not None and name not in leases.FIELDS_OF[verb]:
            raise InvalidRequest(f"{verb.value} does not take {name}")


def _acted(answer: Any) -> Response:
    if isinstance(answer, list):
        answer = answer[0]
    if isinstance(answer, PenstockError):
        return error_response(answer)
    return json_response(acted(answer))
