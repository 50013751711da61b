"""A private RabbitMQ node: own name, ports, epmd, cookie and folders, next to no packaged one."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import HOST, Peer
from bench.processes import Server
from bench.workspace import free_port, is_listening
from tests.support.rabbitmq import SCRIPTS, environment


class RabbitMQ(Peer):
    client = "amqp"
    usual_port = 5672
    queue_type: ClassVar[str]

    def find(self, *, may_install: bool) -> None:
        packages = ["rabbitmq-server"]
        self._program = install.program(
            ["rabbitmq-server"], packages=packages, may_install=may_install, folders=SCRIPTS
        )
        self._epmd = install.program(["epmd"], packages=["erlang-base"], may_install=may_install)

    def start(self, folder: Path) -> Endpoint:
        port, epmd_port = free_port(), free_port()
        env = environment(folder, port=port, epmd_port=epmd_port, dist_port=free_port())
        # Started by the node it would become a daemon, and stay behind when the node stops.
        epmd = [str(self._epmd), "-port", str(epmd_port), "-address", HOST]
        self._keep(Server(epmd, folder=folder, env=env)).wait_until(lambda: is_listening(epmd_port))
        endpoint = self._serve(Server([str(self._program)], folder=folder, env=env), port)
        return {**endpoint, "queue_type": self.queue_type}


class ClassicRabbitMQ(RabbitMQ):
    name = "rabbitmq classic"
    queue_type = "classic"
    note = "durable, persistent, publisher confirms, pushed with prefetch; acks get no answer"


class QuorumRabbitMQ(RabbitMQ):
    name = "rabbitmq quorum"
    queue_type = "quorum"
    note = "one node, publisher confirms, pushed with prefetch; acks get no answer"
