"""One of our servers for the scale loads: fill it, consume from it, restart it on the same data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.apart import ApartError, call_apart
from bench.clients.base import Endpoint
from bench.driver import Outcome
from bench.peers.penstock import Penstock
from bench.workspace import Workspace

HOT = "hot"
BATCHES = (1_000, 100, 10)
PATIENCE = 900.0


@dataclass
class Running:
    peer: Penstock
    folder: Path
    endpoint: Endpoint

    def fill(self, count: int, *, delay_ms: int = 0) -> None:
        """Into the hot queue, in the largest batches that the server takes."""
        for batch in BATCHES:
            try:
                self._apart("fill", queue=HOT, count=count, batch=batch, delay_ms=delay_ms)
                return
            except ApartError as error:
                if batch == BATCHES[-1] or not _is_refused(str(error)):
                    raise

    def make_queues(self, count: int) -> None:
        self._apart("make_queues", count=count)

    def rate(self, batch: int, connections: int, seconds: float) -> float:
        """Messages claimed and completed per second while the backlog keeps its depth."""
        answer = self._apart(
            "consume", queue=HOT, batch=batch, connections=connections, seconds=seconds
        )
        outcome = Outcome(**answer)
        if outcome.error:
            raise ApartError(outcome.error)
        return outcome.rate

    def restart(self) -> float:
        """Stops in order and starts again on the same data; seconds until it was ready."""
        self.peer.stop()
        self.endpoint = self.peer.start(self.folder)
        return self.peer.start_seconds

    def _apart(self, task: str, **job: Any) -> dict[str, Any]:
        job["endpoint"] = self.endpoint
        return call_apart("bench.scale_jobs", task, job, within=PATIENCE)


@contextlib.contextmanager
def running(peer: Penstock, workspace: Workspace) -> Iterator[Running]:
    peer.find(may_install=False)
    folder = workspace.fresh("scale")
    try:
        yield Running(peer, folder, peer.start(folder))
    finally:
        peer.stop()
        workspace.drop(folder)


def _is_refused(error: str) -> bool:
    """A body over the limit may also be answered by closing before it was read."""
    signs = ("HTTP/1.1 400", "HTTP/1.1 413", "the server closed a connection")
    return any(sign in error for sign in signs)
