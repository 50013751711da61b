"""beanstalkd with its binlog synced on every write."""

from __future__ import annotations

from pathlib import Path

from bench import install
from bench.clients.base import Endpoint
from bench.peers.base import HOST, Peer
from bench.processes import Server
from bench.workspace import free_port


class Beanstalkd(Peer):
    name = "beanstalkd"
    client = "beanstalk"
    usual_port = 11300
    note = "-f0; one sync per command, no group commit; reservations live in memory"

    def find(self, *, may_install: bool) -> None:
        self._program = install.program(
            ["beanstalkd"], packages=["beanstalkd"], may_install=may_install
        )

    def start(self, folder: Path) -> Endpoint:
        port = free_port()
        command = [str(self._program), "-l", HOST, "-p", str(port), "-b", str(folder), "-f0"]
        return self._serve(Server(command, folder=folder), port)
