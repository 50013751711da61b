"""PostgreSQL as a queue by hand, with SKIP LOCKED."""

from __future__ import annotations

from pathlib import Path

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import Peer
from bench.peers.cluster import Cluster


class SkipLocked(Peer):
    name = "postgresql by hand"
    client = "skip_locked"
    usual_port = 5432
    note = "default settings; insert, UPDATE with SKIP LOCKED, delete; asyncpg, prepared"

    def find(self, *, may_install: bool) -> None:
        install.module("asyncpg", package="asyncpg", may_install=may_install)
        self._cluster = Cluster(may_install=may_install)

    def start(self, folder: Path) -> Endpoint:
        server, url = self._cluster.start(folder)
        self._keep(server)
        return {"url": url}
