"""One of our servers for the scale loads, with a restart on the same data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.clients.base import Endpoint
from bench.peers.penstock import Penstock
from bench.workspace import Workspace


@dataclass
class Running:
    peer: Penstock
    folder: Path
    endpoint: Endpoint

    def restart(self) -> float:
        """Stops in order and starts again on the same data; seconds until it was ready."""
        self.peer.stop()
        self.endpoint = self.peer.start(self.folder)
        return self.peer.start_seconds


@contextlib.contextmanager
def running(peer: Penstock, workspace: Workspace) -> Iterator[Running]:
    peer.find(may_install=False)
    folder = workspace.fresh("scale")
    try:
        yield Running(peer, folder, peer.start(folder))
    finally:
        peer.stop()
        workspace.drop(folder)
