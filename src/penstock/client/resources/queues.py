"""Queues, and moves of messages out of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict, Unpack

from penstock.api import moves, queues
from penstock.api.moves import LatestMoves, Move, StartMove
from penstock.api.queues import ListQueues, Queue, Redrive, RemoveQueue
from penstock.client.resources.resource import ResourceClient, items_of
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.listing import QueueSort
from penstock.domain.queue.problem import Problem
from penstock.domain.queue.queue import QueueSettings


class QueueFilter(TypedDict, total=False):
    prefix: str
    contains: str
    dead_letter_queue: str | None
    problem: Problem | None
    state: State | None
    label: str | None
    sort: QueueSort | None
    ascending: bool


class QueueClient(ResourceClient):
    def list(self, **wanted: Unpack[QueueFilter]) -> Iterator[Queue]:
        """List queues page by page: by name or as `sort` says, all or those that match."""
        return items_of(lambda cursor: self.page(cursor=cursor, **wanted), lambda page: page.queues)

    def page(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[QueueFilter]
    ) -> queues.Queues:
        given = {name: value for name, value in wanted.items() if value != ""}
        query = ListQueues(limit=limit, cursor=cursor, **given)  # type: ignore[arg-type]
        return self._request(queues.LIST, query=query)

    def get(self, name: str) -> Queue:
        return self._request(queues.GET, queue=name)

    def put(
        self,
        name: str,
        settings: QueueSettings | Mapping[str, Any] | None = None,
        *,
        only_new: bool = False,
    ) -> Queue:
        """Create the queue or replace its settings; with `only_new` raises QueueExists."""
        wanted = QueueSettings() if settings is None else settings
        return self._request(queues.PUT, wanted, only_new=only_new, queue=name)

    def patch(self, name: str, changes: Mapping[str, Any]) -> Queue:
        """Change some settings and keep the others."""
        return self._request(queues.CHANGE, changes, queue=name)

    def delete(self, name: str, *, force: bool = False) -> None:
        self._request(queues.REMOVE, query=RemoveQueue(force=force), queue=name)

    def pause(self, name: str) -> Queue:
        return self._request(queues.PAUSE, queue=name)

    def resume(self, name: str) -> Queue:
        return self._request(queues.RESUME, queue=name)

    def unhold(self, name: str) -> Queue:
        """End a circuit's hold on the queue; a pause remains."""
        return self._request(queues.UNHOLD, queue=name)

    def purge(self, name: str) -> int:
        """Cancel all messages in it; returns how many there were."""
        return self._request(queues.PURGE, queue=name).cancelled

    def redrive(self, name: str, *, limit: int | None = None, to: str | None = None) -> int:
        """Send its dead messages back to the queues they died in, or to the queue `to`."""
        return self._request(queues.REDRIVE, Redrive(limit=limit, to=to), queue=name).redriven


class MoveClient(ResourceClient):
    def start(
        self, queue: str, *, to: str | None = None, max_per_second: int | None = None
    ) -> Move:
        """Start moving to the queue `to`, or each message to the queue it died in."""
        wanted = StartMove(to=to, max_per_second=max_per_second)
        return self._request(moves.START, wanted, queue=queue)

    def list(self, queue: str, *, limit: int = 100) -> list[Move]:
        """List the latest move tasks out of `queue`, newest first."""
        return self._request(moves.LIST, query=LatestMoves(limit=limit), queue=queue).moves

    def get(self, move_id: str) -> Move:
        return self._request(moves.GET, move=move_id)

    def cancel(self, move_id: str) -> Move:
        return self._request(moves.CANCEL, move=move_id)
