"""Servers from PyPI that stand in for SQS, each in an environment of its own.

Looked at and left out: `localstack`, `localcloudforge` and `testcontainers-floci` only drive Docker
images; `localstack-core` does not start with what pip finds for it (2026.3.0: it misses parts of
cbor2 and pyOpenSSL that are gone); `moto-ext` is moto; `fakecloud` is the client of a server that
PyPI does not have; `aiomoto` and `pyawsmock` replace the client and serve nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import HOST, Peer
from bench.processes import Server
from bench.workspace import free_port, free_ports, is_listening

MAX_SERVICES = 128


class LookAlike(Peer):
    client = "sqs"
    note = (
        "SQS look-alike in memory: NOT durable, there is no sync before an answer, nor later; "
        "4 connections"
    )
    # A receive walks through the whole queue: with 64 connections none ends in seconds.
    most_connections = 4
    package: ClassVar[str]
    # What its code needs, whatever its metadata says.
    oldest_python: ClassVar[tuple[int, int]] = (3, 11)

    def find(self, *, may_install: bool) -> None:
        self._programs = install.environment(
            self.package, oldest=self.oldest_python, may_install=may_install
        )


class MiniStack(LookAlike):
    name = package = "ministack"

    def start(self, folder: Path) -> Endpoint:
        port = free_port()
        env = {"GATEWAY_PORT": str(port), "BIND_HOST": HOST, "SERVICES": "sqs"}
        command = [str(self._programs / "ministack")]
        return self._serve(Server(command, folder=folder, env=env), port)


class LocalWebServices(LookAlike):
    name = package = "local-web-services"

    def start(self, folder: Path) -> Endpoint:
        first = free_ports(MAX_SERVICES)  # every service has a port of its own
        (folder / "main.tf").touch()  # it serves a Terraform project: an empty one will do
        command = [str(self._programs / "ldk"), "dev", "--mode", "terraform", "--no-persist"]
        command += ["--port", str(first)]
        server = self._keep(Server(command, folder=folder, env={"HOME": str(folder)}))
        # The first port opens last; a queue made before that hangs the server.
        server.wait_until(lambda: is_listening(first))
        return {"host": HOST, "port": first + 2}


class LocalEmu(LookAlike):
    name = package = "localemu"
    oldest_python = (3, 12)

    def start(self, folder: Path) -> Endpoint:
        port = free_port()
        command = [str(self._programs / "localemu"), "start", "--host", HOST, "--port", str(port)]
        return self._serve(Server(command, folder=folder, env={"HOME": str(folder)}), port)
