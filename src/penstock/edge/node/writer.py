"""The writer process of a node: owns group commit, waiting claims and duties.

On PostgreSQL, where every process has its own connections, it does what else is done once per node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Unpack

import uvloop

from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.edge.node.child import Child
from penstock.edge.node.control import ControlChannel, NodeAssignment
from penstock.edge.node.forwarding import ForwardedRequests
from penstock.edge.routes import routes
from penstock.edge.serving.definitions import apply_definitions
from penstock.edge.serving.embedded_workers import EmbeddedWorkers
from penstock.edge.serving.serve import app_of, open_served_broker, scaling, waiting_claims
from penstock.ports.link import ForwardedRequest, FrontState, ResponseReceiver
from penstock.ports.store import Claim, Claimed
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.services.messages import ClaimOptions
from penstock.supervision.health import NodePart
from penstock.wiring.broker import CLOSING_WAIT_MS, Broker
from penstock.wiring.fronts import links_to_fronts


def run_writer(assignment: NodeAssignment, channel: ControlChannel) -> None:
    broker = open_served_broker(assignment.settings)
    try:
        broker.refuse_public_without_keys()
        apply_definitions(broker)
        with scaling(broker):
            uvloop.run(_work(broker, channel))
    finally:
        broker.close()


async def _work(broker: Broker, channel: ControlChannel) -> None:
    child = Child(channel)
    services = WriterServices(broker)
    links = links_to_fronts(broker, services)
    services.on_change = links.forget
    child.listen(on_connect=lambda message, end: links.connect(message.front, end))
    broker.start_duties()
    broker.start_pushing()
    broker.start_archiving()
    workers = EmbeddedWorkers(broker.settings, broker.health)
    workers.start()
    child.report_ready()
    await child.draining.wait()

    workers.drain()
    await child.stopping.wait()
    services.close()
    broker.store.limit_waits(min(CLOSING_WAIT_MS, broker.settings.server.drain_ms))
    links.close()
    broker.sql.close()  # the loop waits for threads before it closes
    await workers.ended()


class WriterServices:
    """What the writer does for fronts, beside the hot verbs of the store."""

    def __init__(self, broker: Broker) -> None:
        self._health = broker.health
        self._claims = waiting_claims(broker)
        self._results = broker.waiting_results
        self._node_claims = NodeClaims(self._claims)
        self._parts: dict[int, NodePart] = {}
        app = app_of(broker, routes(broker, self._node_claims))
        self.on_change: Callable[[str], None] = lambda queue: None
        self._requests = ForwardedRequests(app, on_change=lambda queue: self.on_change(queue))

    def claim(self, wanted: Claim, *, queue: str, wait_ms: int) -> Awaitable[Claimed]:
        # Only number and name count; the front has applied the settings of the queue.
        place = Queue(
            queue_no=wanted.queue_no, name=queue, settings=QueueSettings(), created_at=wanted.now
        )
        return self._claims.claim(
            place,
            wait_ms=wait_ms,
            limit=wanted.limit,
            lease_ms=wanted.lease_ms,
            claimed_by=wanted.claimed_by,
            in_a_row=wanted.in_a_row,
            claim_key=wanted.claim_key,
            finishing=wanted.finishing,
            kinds=wanted.kinds,
        )

    def serve(
        self, request: ForwardedRequest, receiver: ResponseReceiver
    ) -> Callable[[], None] | None:
        return self._requests.serve(request, receiver)

    def note(self, front: int, state: FrontState | None) -> None:
        part = self._parts.get(front)
        if part is None:
            part = self._parts[front] = self._health.add(NodePart(f"front {front}"))
        if state is None:
            part.error = "it is not connected to the writer"
            self._node_claims.fronts.pop(front, None)
            return
        troubles = [f"{one.part} {one.state}: {one.text}" for one in state.troubles]
        part.error = "; ".join(troubles) or None
        self._node_claims.fronts[front] = state.waiting

    def close(self) -> None:
        self._claims.close()
        self._results.close()


class NodeClaims:
    """Claims that wait here, and, for the figures of the node, those that wait in fronts."""

    def __init__(self, local: WaitingClaims) -> None:
        self._local = local
        self.fronts: dict[int, dict[int, int]] = {}  # by front and queue number

    @property
    def waiting(self) -> int:
        return self._local.waiting + sum(sum(counts.values()) for counts in self.fronts.values())

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        wanted = list(queue_nos)
        waiting_in_fronts = sum(
            counts.get(queue_no, 0) for counts in self.fronts.values() for queue_no in wanted
        )
        return self._local.waiting_for(wanted) + waiting_in_fronts

    async def claim(
        self, queue: Queue, *, wait_ms: int, **options: Unpack[ClaimOptions]
    ) -> Claimed:
        return await self._local.claim(queue, wait_ms=wait_ms, **options)

    def close(self) -> None:
        self._local.close()
