"""Push delivery: from a send to a backend that answers at once, over many queues.

How many deliveries per second get out of a backlog, each completed on the disk before the next of
its queue; how long one takes at the pace of a small service; and after an outage, how long it takes
until all held queues are released and empty, and how hard the backend is hit meanwhile.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.fsync import Latency, fdatasync_times, summary
from bench.push_backend import BUCKET, SENT_AT, Backend, backend
from bench.workspace import Workspace
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.delivery.delivery import GROUP, KIND, Delivery, queue_settings, to_body
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Session
from penstock.settings import Settings
from penstock.wiring.broker import Broker, open_broker

PACE = 150.0
PATTERN = "/(.*)"
PAYLOAD = b"x" * 1024
HELD_EACH = 3  # deliveries in each queue that an outage holds
RELEASE_MS = 100  # ramped: twice as many queues at every tick
_BATCH = 500


@dataclass(frozen=True)
class Push:
    queues: int
    rate: float  # deliveries/s out of a backlog
    arrived_after: Latency  # from the beginning of the send, in ms
    disk: Latency  # one sync at the same moment
    recovery: float  # seconds from the end of an outage to the last held delivery
    held: int  # deliveries
    peak: float  # requests/s that the backend saw at most meanwhile

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(workspace: Workspace, *, queues: int, each: int, seconds: float) -> Push:
    with backend() as shop:
        rate = _with_node(workspace, shop, queues, lambda node: _drain(node, shop, each))
        paced, disk = _with_node(workspace, shop, queues, lambda node: _pace(node, shop, seconds))
        took, peak = _with_node(workspace, shop, queues, lambda node: _recover(node, shop))
    return Push(queues, rate, paced, disk, took, queues * HELD_EACH, peak)


class Node:
    """A broker with its queues and the one route; it pushes on request."""

    def __init__(self, workspace: Workspace, shop: Backend, queues: int) -> None:
        self.folder = workspace.fresh("push")
        self.broker: Broker = open_broker(Settings(data=str(self.folder)))
        self.broker.routes.put(json.dumps({PATTERN: {"url": f"{shop.url}/$1"}})).result()
        self.queues: Sequence[Queue] = self.broker.store.write(
            lambda session: [self._add(session, number) for number in range(queues)]
        ).result()

    def _add(self, session: Session, number: int) -> Queue:
        return session.queues.add(f"q{number}", queue_settings(), now=self.broker.clock.now())

    def fill(self, each: int) -> int:
        """Send `each` deliveries to every queue; returns the total."""
        drafts = [self._draft(queue, ()) for queue in self.queues for _ in range(each)]
        messages = self.broker.messages
        for start in range(0, len(drafts), _BATCH):
            messages.send(drafts[start : start + _BATCH]).result()
        return len(drafts)

    def send(self, number: int) -> None:
        queue = self.queues[number % len(self.queues)]
        headers = ((SENT_AT, str(time.perf_counter())),)
        self.broker.messages.send([self._draft(queue, headers)]).result()

    def _draft(self, queue: Queue, headers: tuple[tuple[str, str], ...]) -> Any:
        delivery = Delivery(
            method="POST",
            uri=f"/{queue.name}",
            headers=headers,
            payload=PAYLOAD,
            queued_at=self.broker.clock.now(),
        )
        draft = Draft(body=to_body(delivery), group=GROUP, kind=KIND, entity_id=delivery.uri)
        return self.broker.messages.draft(queue, draft)


def _with_node(workspace: Workspace, shop: Backend, queues: int, do: Callable[[Node], Any]) -> Any:
    node = Node(workspace, shop, queues)
    shop.begin()
    try:
        return do(node)
    finally:
        node.broker.close()
        workspace.drop(node.folder)


def _drain(node: Node, shop: Backend, each: int) -> float:
    count = node.fill(each)
    node.broker.start_pushing()
    result = shop.until(count)
    return (count - 1) / float(result["last"] - result["first"])


def _pace(node: Node, shop: Backend, seconds: float) -> tuple[Latency, Latency]:
    node.broker.start_pushing()
    node.send(0)
    shop.until(1)  # from here on the sender is there
    shop.begin()
    count, due = int(PACE * seconds), time.perf_counter()
    for number in range(count):
        node.send(number)
        due += 1 / PACE
        time.sleep(max(0.0, due - time.perf_counter()))
    result = shop.until(count)
    syncs = fdatasync_times(node.folder, count=count, interval=1 / PACE)
    return summary(result["latencies"]), summary(syncs)


def _recover(node: Node, shop: Backend) -> tuple[float, float]:
    """The circuit is opened by hand, holds all queues, and is closed when the outage is over."""
    circuits, one = node.broker.circuits, circuit_hash(PATTERN)
    breaker = BreakerSettings(
        circuit_check_enabled=True,
        statistics_update_enabled=True,
        unlock_queues=BreakerTask(enabled=True, interval_ms=RELEASE_MS),
        unlock_growth=2.0,
    )
    circuits.breaker.put(breaker).result()
    circuits.force_open(one).result()
    count = node.fill(HELD_EACH)
    node.broker.start_duties()
    node.broker.start_pushing()
    _wait_until_held(node, one)
    circuits.close(one).result()
    began = time.perf_counter()
    result = shop.until(count)
    return float(result["last"] - began), float(result["most"]) / BUCKET


def _wait_until_held(node: Node, one: str) -> None:
    while True:
        view = node.broker.circuits.find(one).result()
        if view is not None and view.held >= len(node.queues):
            return
        time.sleep(0.05)
