"""A private RabbitMQ node: own name, ports, epmd, cookie and folders, next to no packaged one."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import HOST, Peer
from bench.processes import Server
from bench.workspace import free_port, is_listening

# The script itself: the packaged wrapper on the path insists on the rabbitmq user.
SCRIPTS = ("/usr/lib/rabbitmq/bin",)


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
        env = self._environment(folder, port, epmd_port)
        # Started by the node it would become a daemon, and stay behind when the node stops.
        epmd = [str(self._epmd), "-port", str(epmd_port), "-address", HOST]
        self._keep(Server(epmd, folder=folder, env=env)).wait_until(lambda: is_listening(epmd_port))
        endpoint = self._serve(Server([str(self._program)], folder=folder, env=env), port)
        return {**endpoint, "queue_type": self.queue_type}

    def _environment(self, folder: Path, port: int, epmd_port: int) -> dict[str, str]:
        nothing = folder / "rabbitmq"
        return {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": f"bench{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "no-environment"),
            "RABBITMQ_CONFIG_FILE": str(nothing),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "no-plugins"),
        }


class ClassicRabbitMQ(RabbitMQ):
    name = "rabbitmq classic"
    queue_type = "classic"
    note = "durable, persistent, publisher confirms, pushed with prefetch; acks get no answer"


class QuorumRabbitMQ(RabbitMQ):
    name = "rabbitmq quorum"
    queue_type = "quorum"
    note = "one node, publisher confirms, pushed with prefetch; acks get no answer"
