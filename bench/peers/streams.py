"""Valkey or Redis streams, syncing the append-only file before every answer."""

from __future__ import annotations

from pathlib import Path

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import HOST, Peer
from bench.processes import Server
from bench.workspace import free_port


class Streams(Peer):
    client = "streams"
    usual_port = 6379
    note = "appendonly, appendfsync always; XADD, XREADGROUP, XACK and XDEL; all data in memory"
    server: str

    def find(self, *, may_install: bool) -> None:
        names, packages = [self.server], [self.server]
        self._program = install.program(names, packages=packages, may_install=may_install)

    def start(self, folder: Path) -> Endpoint:
        port = free_port()
        command = [str(self._program), "--bind", HOST, "--port", str(port), "--dir", str(folder)]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        return self._serve(Server(command, folder=folder), port)


class Valkey(Streams):
    name = "valkey streams"
    server = "valkey-server"


class Redis(Streams):
    name = "redis streams"
    server = "redis-server"
