"""AweQ's four endpoints on an ordinary queue; see docs/aweq.md."""

from __future__ import annotations

import re
from typing import Any

from penstock.domain.access.api_key import Role
from penstock.domain.errors import LeaseLost, PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.queue.queue import Queue, QueueSettings, Redelivery
from penstock.edge.aweq import answers, requests
from penstock.edge.server.app import refuse_pages
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.ports.unit_of_work import await_steps
from penstock.runtime.waiting_claims import ClaimWaiter
from penstock.services.messages import MessageService
from penstock.services.queues import ProtocolQueue, QueueService
from penstock.settings.values import AweqSettings

_KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class AweqApi:
    def __init__(
        self,
        messages: MessageService,
        queues: QueueService,
        waiting: ClaimWaiter,
        *,
        settings: AweqSettings,
        reap_interval_ms: int,
        limits: Limits,
    ) -> None:
        self._messages = messages
        self._queues = queues
        self._waiting = waiting
        self._settings = settings
        self._reap_interval_ms = reap_interval_ms
        self._limits = limits
        wanted = QueueSettings(
            lease_ms=settings.lease_ms, max_attempts=None, redelivery=Redelivery.BACK
        )
        self._queue = ProtocolQueue(queues, messages, name=settings.queue, settings=wanted)

    def routes(self) -> list[HttpRoute]:
        return [
            *self._route("POST", "/send-message", self.send, Role.PRODUCE, "on publish."),
            *self._route("GET", "/receive-message", self.receive, Role.CONSUME, "on consume."),
            *self._route(
                "DELETE", "/delete-message/{key}", self.delete, Role.CONSUME, "on delete."
            ),
            *self._route("GET", "/get-stats", self.stats, Role.READ, "on stats query."),
        ]

    def _route(
        self, method: str, path: str, do: Any, role: Role, what_failed: str
    ) -> tuple[HttpRoute, HttpRoute]:
        refusal = answers.refusal(f"Queue failure {what_failed}")

        def refuse(request: Request, error: PenstockError) -> Response:
            return self._for_pages(refusal(request, error))

        async def handle(request: Request, respond: Respond) -> Response:
            self._refuse_pages(request)
            return self._for_pages(await do(request))

        async def preflight(request: Request, respond: Respond) -> Response:
            return self._for_pages(answers.options("GET,HEAD" if method == "GET" else method))

        shared: dict[str, Any] = {"path": path, "refuse": refuse}
        return (
            HttpRoute(
                method=method,
                handler=handle,
                role=role,
                queue=self._queue.name,
                takes_any_media=True,
                takes_other_sites=True,  # `_refuse_pages` checks them, GET requests included
                **shared,
            ),
            HttpRoute(method="OPTIONS", handler=preflight, **shared),
        )

    def _refuse_pages(self, request: Request) -> None:
        """Reject requests from pages of other sites: even a GET takes messages."""
        allowed = self._settings.allow_origin
        origin = request.headers.get(b"origin", b"").decode("latin-1")
        if allowed is None or allowed not in (answers.ANY_ORIGIN, origin):
            refuse_pages(request.headers)

    def _for_pages(self, response: Response) -> Response:
        allowed = self._settings.allow_origin
        return response if allowed is None else answers.for_pages(response, origin=allowed)

    async def send(self, request: Request) -> Response:
        draft = Draft(body=requests.read_message(request))

        return answers.send_response((await self._queue.send(draft)).id)

    async def receive(self, request: Request) -> Response:
        wanted = requests.read_count(request, most=self._limits.max_claim)
        claimed_by = requests.consumer(request)
        if request.method == "HEAD":  # the response has no body to put messages into
            return answers.receive_response([], wanted=wanted)

        async def do(queue: Queue) -> Response:
            claimed = await self._waiting.claim(
                queue,
                limit=wanted,
                wait_ms=0,
                lease_ms=self._settings.lease_ms,
                claimed_by=claimed_by,
            )
            return answers.receive_response(claimed.messages, wanted=wanted)

        return await self._queue.use(do)

    async def delete(self, request: Request) -> Response:
        key, asked_by = request.params["key"], requests.consumer(request)

        async def do(queue: Queue) -> Response:
            found = await self._messages.find(key) if _KEY.fullmatch(key) else None
            if found is None or not requests.may_delete(
                found, queue_no=queue.queue_no, asked_by=asked_by
            ):
                return answers.delete_response(was_leased=False)
            return answers.delete_response(was_leased=await self._complete(Lease.of(found)))

        return await self._queue.use(do)

    async def _complete(self, lease: Lease) -> bool:
        """Complete the message; False if another consumer has claimed it since it was read."""
        [answer] = await self._messages.act([self._messages.plan(lease, Verb.COMPLETE)])
        if isinstance(answer, LeaseLost):
            return False
        if isinstance(answer, PenstockError):
            raise answer
        return True

    async def stats(self, request: Request) -> Response:
        async def do(queue: Queue) -> Response:
            # Expired checkouts count as queued.
            await await_steps(self._queues.make_all_due_ready(queue.name))
            counts = (await self._queues.get(queue.name)).counts
            return answers.stats(
                queued=counts.ready + counts.waiting,
                leased=counts.leased,
                lease_ms=self._settings.lease_ms,
                reap_interval_ms=self._reap_interval_ms,
            )

        return await self._queue.use(do)
