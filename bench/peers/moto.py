"""moto's server, which many use as a local SQS."""

from __future__ import annotations

import sys
from pathlib import Path

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import HOST, Peer
from bench.processes import Server
from bench.workspace import free_port


class Moto(Peer):
    name = "moto server"
    client = "sqs"
    note = "SQS look-alike in memory: NOT durable"

    def find(self, *, may_install: bool) -> None:
        install.module("moto", package="moto[server]", may_install=may_install)
        install.module("flask_cors", package="moto[server]", may_install=may_install)

    def start(self, folder: Path) -> Endpoint:
        port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
        return self._serve(Server(command, folder=folder), port)
