"""Claims.  A claim can complete other messages in the same transaction, which saves the worker a
round trip per message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from penstock.api import leases, messages
from penstock.api.leases import Claim
from penstock.domain.errors import InvalidRequest, LeaseLost, PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.message.lifecycle import Content, Message
from penstock.domain.queue.queue import Queue
from penstock.edge.instants import to_text
from penstock.edge.native.bind import route_of
from penstock.edge.native.wire import check_batch, decode, raw_json, results
from penstock.edge.server.errors import error_response, unexpected
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import HttpRoute
from penstock.ports.store import Claimed
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.services.directory import Directory
from penstock.services.messages import ClaimOptions, MessageService

_claim = msgspec.json.Decoder(Claim)


class ClaimApi:
    def __init__(
        self, messages: MessageService, directory: Directory, waiting: WaitingClaims, limits: Limits
    ) -> None:
        self._messages = messages
        self._directory = directory
        self._waiting = waiting
        self._limits = limits

    def routes(self) -> list[HttpRoute]:
        return [route_of(leases.CLAIM, self.claim)]

    def claim(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        wanted = decode(_claim, request.body)
        if wanted.wait_ms is not None and not 0 <= wanted.wait_ms <= self._limits.max_wait_ms:
            raise InvalidRequest(f"wait_ms must be from 0 to {self._limits.max_wait_ms}")
        if wanted.complete:
            check_batch(len(wanted.complete), self._limits)
        queue = self._directory.cached(request.params["queue"])
        if queue is None or self._wait_ms(queue, wanted):
            return self._claim_waiting(request, wanted, queue)
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

    async def _claim_waiting(
        self, request: Request, wanted: Claim, queue: Queue | None
    ) -> Response:
        if queue is None:
            queue = await self._directory.load(request.params["queue"])
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
        if planned:  # complete now; the claim may wait for a long time
            first: ClaimOptions = {**options, "finishing": _acts(planned)}
            claimed = await self._waiting.claim(queue, wait_ms=0, **first)
            finished = claimed.finished
        if not planned or not claimed.messages:
            claimed = await self._waiting.claim(
                queue, wait_ms=self._wait_ms(queue, wanted), **options
            )
        return self._claimed(queue, planned, claimed, finished)

    def _plan(self, queue: Queue, receipts: Sequence[str]) -> list[LeaseAct | PenstockError]:
        return [self._completion(queue, receipt) for receipt in receipts]

    def _completion(self, queue: Queue, receipt: str) -> LeaseAct | PenstockError:
        try:
            lease = self._messages.read_receipt(receipt)
        except LeaseLost as error:
            return error
        if lease.queue_no != queue.queue_no:  # the key may not cover that queue
            return LeaseLost("of another queue")
        return self._messages.plan(lease, Verb.COMPLETE)

    def _wait_ms(self, queue: Queue, wanted: Claim) -> int:
        if wanted.wait_ms is not None:
            return wanted.wait_ms
        return min(queue.settings.wait_ms or 0, self._limits.max_wait_ms)

    def _answer(
        self, queue: Queue, planned: Sequence[LeaseAct | PenstockError], answer: Any
    ) -> Response:
        if isinstance(answer, Claimed):
            return self._claimed(queue, planned, answer, answer.finished)
        if isinstance(answer, PenstockError):
            return error_response(self._messages.error_of(queue.name, answer))
        return unexpected(answer)

    def _claimed(
        self,
        queue: Queue,
        planned: Sequence[LeaseAct | PenstockError],
        claimed: Claimed,
        finished: Sequence[Any],
    ) -> Response:
        found = [self._record(queue, *one) for one in claimed.messages]
        return json_response(leases.Claimed(found, results(planned, finished) if planned else []))

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
