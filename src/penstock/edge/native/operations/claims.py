"""Claims.  Whoever has handled messages may complete them in the same request, and so in the same
transaction: a worker needs one round trip per message instead of two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from penstock.domain.access.api_key import Role
from penstock.domain.errors import (
    ClaimNotRepeatable,
    InvalidRequest,
    LeaseLost,
    PenstockError,
    TooManyWaiting,
)
from penstock.domain.limits import Limits
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.queue.queue import Queue
from penstock.edge.instants import to_text
from penstock.edge.native import wire, wire_in
from penstock.edge.native.operations.results import check_batch, refusal, results
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.edge.waiting_claims import WaitingRoom
from penstock.ports.store import Claimed
from penstock.services.directory import Directory
from penstock.services.messages import ClaimOptions, Messages

_claim = msgspec.json.Decoder(wire_in.ClaimIn)


class ClaimApi:
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
                path=f"{queue}/claims",
                handler=self.claim,
                role=Role.CONSUME,
                name="claimMessages",
                summary="Lease messages, and complete those that are done; waits for the first.",
                takes=wire_in.ClaimIn,
                example={"limit": 10, "wait_ms": 1_000, "claimed_by": "worker-1"},
                refuses=(ClaimNotRepeatable, TooManyWaiting),
                gives=wire.ClaimedOut,
            ),
        ]

    def claim(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        wanted = wire_in.decode(_claim, request.body)
        if wanted.wait_ms is not None and not 0 <= wanted.wait_ms <= self._limits.max_wait_ms:
            raise InvalidRequest(f"wait_ms must be from 0 to {self._limits.max_wait_ms}")
        if wanted.complete:
            check_batch(len(wanted.complete), self._limits)
        queue = self._directory.cached(request.params["queue"])
        if queue is None or self._wait_ms(queue, wanted):
            return self._claim_waiting(request, wanted)
        planned = self._plan(queue, wanted.complete) if wanted.complete else []
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

    async def _claim_waiting(self, request: Request, wanted: wire_in.ClaimIn) -> Response:
        name = request.params["queue"]
        queue = self._directory.cached(name) or await self._directory.load(name)
        planned = self._plan(queue, wanted.complete)
        options: ClaimOptions = {
            "limit": wanted.limit,
            "lease_ms": wanted.lease_ms,
            "claimed_by": wanted.claimed_by,
            "in_a_row": wanted.in_a_row,
            "claim_key": wanted.claim_key,
            "kinds": wanted.kinds,
        }
        finished: list[Any] = []
        if planned:  # what is done is done at once, however long the claim waits
            first: ClaimOptions = {**options, "finishing": _acts(planned)}
            claimed = await self._room.claim(queue, wait_ms=0, **first)
            finished = claimed.finished
        if not planned or not claimed.messages:
            claimed = await self._room.claim(queue, wait_ms=self._wait_ms(queue, wanted), **options)
        return self._claimed(queue, planned, claimed, finished)

    def _plan(self, queue: Queue, receipts: Sequence[str]) -> list[LeaseAct | PenstockError]:
        return [self._completion(queue, receipt) for receipt in receipts]

    def _completion(self, queue: Queue, receipt: str) -> LeaseAct | PenstockError:
        try:
            lease = self._messages.read_receipt(receipt)
        except LeaseLost as error:
            return error
        if lease.queue_no != queue.queue_no:  # the caller may have no business there
            return LeaseLost("of another queue")
        return self._messages.plan(lease, Verb.COMPLETE)

    def _wait_ms(self, queue: Queue, wanted: wire_in.ClaimIn) -> int:
        if wanted.wait_ms is not None:
            return wanted.wait_ms
        return min(queue.settings.wait_ms or 0, self._limits.max_wait_ms)

    def _answer(
        self, queue: Queue, planned: Sequence[LeaseAct | PenstockError], answer: Any
    ) -> Response:
        if isinstance(answer, Claimed):
            return self._claimed(queue, planned, answer, answer.finished)
        return refusal(answer, queue, self._directory)

    def _claimed(
        self,
        queue: Queue,
        planned: Sequence[LeaseAct | PenstockError],
        claimed: Claimed,
        finished: Sequence[Any],
    ) -> Response:
        out = wire.ClaimedOut([])
        for message, content in claimed.messages:
            shown = wire.message_out(queue.name, message, content)
            shown.receipt = self._messages.receipt(message)
            shown.leased_until = to_text(message.due_at)
            if message.dead_from is not None:
                shown.dead_from = self._directory.known_name(message.dead_from)
            out.messages.append(shown)
        if planned:
            out.completed = results(planned, finished)
        return json_response(out)


def _acts(planned: Sequence[LeaseAct | PenstockError]) -> list[LeaseAct]:
    return [plan for plan in planned if isinstance(plan, LeaseAct)]
