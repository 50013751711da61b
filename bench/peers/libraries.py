"""Queue libraries without a server: they run inside the load generator."""

from __future__ import annotations

from pathlib import Path

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import Peer


class EmbeddedPeer(Peer):
    is_embedded = True
    most_connections = 1
    module: str
    package: str

    def find(self, *, may_install: bool) -> None:
        install.module(self.module, package=self.package, may_install=may_install)

    def start(self, folder: Path) -> Endpoint:
        return {"folder": str(folder)}


class LiteQueue(EmbeddedPeer):
    name = "litequeue"
    client = module = package = "litequeue"
    note = "SQLite in process, synchronous FULL, one connection; tens share a transaction"


class PersistQueue(EmbeddedPeer):
    name = "persist-queue"
    client = module = "persistqueue"
    package = "persist-queue"
    note = "SQLite ack queue in process, synchronous FULL, one connection; no batches"
