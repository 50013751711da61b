"""Claims, and acts on leases, single or in batches.

A claim can complete other messages in the same transaction, which saves the worker a round trip per
message.  An act needs no task if the key covers all queues.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from penstock.api import leases, messages
from penstock.api.leases import ActFields, Acts, BatchAct, Claim
from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Content, Message
from penstock.domain.queue.queue import Queue
from penstock.edge.instants import to_text
from penstock.edge.native.bind import route_of
from penstock.edge.server.errors import error_answer, error_response, unexpected
from penstock.edge.server.request import (
    Request,
    Respond,
    Response,
    decode,
    json_response,
    raw_json,
)
from penstock.edge.server.router import ACTS, CLAIMS, HttpRoute
from penstock.operations.drafts import text_of
from penstock.operations.paging import check_batch
from penstock.ports.store import Acted, Claimed
from penstock.runtime.waiting_claims import ClaimWaiter
from penstock.services.directory import Directory
from penstock.services.messages import MessageService

_claim = msgspec.json.Decoder(Claim)


class ClaimApi:
    def __init__(
        self, messages: MessageService, directory: Directory, room: ClaimWaiter, limits: Limits
    ) -> None:
        self._messages = messages
        self._directory = directory
        self._room = room
        self._limits = limits

    def routes(self) -> list[HttpRoute]:
        return [route_of(leases.CLAIM, self.claim, order=CLAIMS)]

    def claim(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        wanted = decode(_claim, request.body)
        if wanted.wait_ms is not None and not 0 <= wanted.wait_ms <= self._limits.max_wait_ms:
            raise InvalidRequest(f"wait_ms must be from 0 to {self._limits.max_wait_ms}")
        if wanted.complete:
            check_batch(len(wanted.complete), self._limits)
        queue = self._directory.cached(request.params["queue"])
        if queue is None or self._wait_ms(queue, wanted):
            return self._claim_waiting(request, wanted, queue)
        planned = self._plan(queue, wanted) if wanted.complete or wanted.results else []
        ticket = self._messages.claim(
            queue,
            limit=wanted.limit,
            lease_ms=wanted.lease_ms,
            claimed_by=wanted.claimed_by,
            in_a_row=wanted.in_a_row,
            claim_key=wanted.claim_key,
            finishing=_acts(planned),
            kinds=wanted.kinds,
        )
        ticket.then(lambda answer: respond(self._answer(queue, planned, answer)))
        return None

    async def _claim_waiting(
        self, request: Request, wanted: Claim, queue: Queue | None
    ) -> Response:
        if queue is None:
            queue = await self._directory.load(request.params["queue"])
        planned = self._plan(queue, wanted)
        claimed = await self._room.claim(
            queue,
            wait_ms=self._wait_ms(queue, wanted),
            limit=wanted.limit,
            lease_ms=wanted.lease_ms,
            claimed_by=wanted.claimed_by,
            in_a_row=wanted.in_a_row,
            claim_key=wanted.claim_key,
            finishing=_acts(planned),
            kinds=wanted.kinds,
        )
        return self._claimed(queue, planned, claimed)

    def _plan(self, queue: Queue, wanted: Claim) -> list[LeaseAct | PenstockError]:
        results = {}
        if wanted.results:
            if not wanted.results.keys() <= set(wanted.complete):
                raise InvalidRequest("results has a receipt that complete does not have")
            results = {receipt: text_of(raw, "a result") for receipt, raw in wanted.results.items()}
        return self._messages.completions(queue, wanted.complete, results)

    def _wait_ms(self, queue: Queue, wanted: Claim) -> int:
        if wanted.wait_ms is not None:
            return wanted.wait_ms
        return min(queue.settings.wait_ms or 0, self._limits.max_wait_ms)

    def _answer(
        self, queue: Queue, planned: Sequence[LeaseAct | PenstockError], answer: Any
    ) -> Response:
        if isinstance(answer, Claimed):
            return self._claimed(queue, planned, answer)
        if isinstance(answer, PenstockError):
            return error_response(self._messages.error_of(queue.name, answer))
        return unexpected(answer)

    def _claimed(
        self,
        queue: Queue,
        planned: Sequence[LeaseAct | PenstockError],
        claimed: Claimed,
    ) -> Response:
        found = [self._record(queue, *one) for one in claimed.messages]
        results = _results(planned, claimed.finished) if planned else []
        return json_response(leases.Claimed(found, results))

    def _record(self, queue: Queue, message: Message, content: Content) -> messages.Message:
        home = message.dead_from
        return messages.Message.of(
            queue.name,
            message,
            content,
            to_text,  # type: ignore[arg-type]  # see api/operation.py: Instant
            raw_json,
            self._messages.receipt(message),
            None if home is None else self._directory.known_name(home),
        )


def _acts(planned: Sequence[LeaseAct | PenstockError]) -> list[LeaseAct]:
    return [plan for plan in planned if isinstance(plan, LeaseAct)]


_act = msgspec.json.Decoder(ActFields)
_batch = msgspec.json.Decoder(Acts)
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
            *(route_of(operation, self._act_handler(verb), order=ACTS) for verb, operation in acts),
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
        wanted = decode(_batch, request.body).acts
        check_batch(len(wanted), self._limits)
        planned = [await self._plan_act(request, act) for act in wanted]
        acts = [plan for plan in planned if isinstance(plan, LeaseAct)]
        answers = await self._messages.act(acts) if acts else []
        return json_response(leases.ActResults(_results(planned, answers)))

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
        if verb is Verb.SNOOZE and act.delay_ms is None:
            raise InvalidRequest("snooze requires delay_ms")
        # Each verb takes at most one of the durations and one of the texts.
        durations = (act.retry_in_ms, act.lease_ms, act.delay_ms)
        return self._messages.plan(
            lease,
            verb,
            delay_ms=next((ms for ms in durations if ms is not None), None),
            text=act.reason if act.error is None else act.error,
            is_late_ok=bool(act.is_late_ok),
            is_start=bool(act.is_start),
            progress=None if act.progress is None else _encode(act.progress).decode(),
            result=None if act.result is UNSET else text_of(act.result, "the result"),
            signal=act.signal,
        )

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
        value = getattr(act, name)
        is_given = value is not None and value is not UNSET
        if is_given and name not in leases.FIELDS_OF[verb]:
            raise InvalidRequest(f"{verb.value} does not take {name}")


def _acted(answer: Any) -> Response:
    if isinstance(answer, list):
        answer = answer[0]
    if isinstance(answer, PenstockError):
        return error_response(answer)
    return json_response(_result(answer))


def _results(planned: Sequence[Any], answers: Sequence[Any]) -> list[Any]:
    """The results of acts, in order; an act that could not be planned has its error."""
    left = iter(answers)
    return [_result(plan if isinstance(plan, PenstockError) else next(left)) for plan in planned]


def _result(answer: Acted | PenstockError) -> Any:
    if isinstance(answer, PenstockError):
        return error_answer(answer)
    return messages.Acted(answer.id, answer.state, to_text(answer.due_at))  # type: ignore[arg-type]
