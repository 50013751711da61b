"""moto's server, which many use as a local SQS."""

from __future__ import annotations

import sys
from pathlib import Path

from bench import install
from bench.clients.base import Endpoint
from bench.clients.sqs import CREDENTIAL
from bench.peers.base import HOST, Peer
from bench.processes import Server
from bench.workspace import free_port


class Moto(Peer):
    name = "moto server"
    client = "sqs"
    # A claim copies the whole queue: with 64 connections it finishes none in seconds.
    most_connections = 4
    note = (
        "SQS look-alike in memory: NOT durable, there is no sync before an answer, nor later; "
        "4 connections, each closed after its answer"
    )

    def find(self, *, may_install: bool) -> None:
        install.module("moto", package="moto[server]", may_install=may_install)
        install.module("flask_cors", package="moto[server]", may_install=may_install)

    def start(self, folder: Path) -> Endpoint:
        port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
        endpoint = self._serve(Server(command, folder=folder), port)
        return {**endpoint, "credential": CREDENTIAL}  # by this it knows what service is meant
