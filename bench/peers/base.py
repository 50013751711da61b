"""What the runner asks of a peer: be found, start, say where it listens, stop."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from bench.clients.base import Endpoint
from bench.processes import Server
from bench.workspace import is_listening

HOST = "127.0.0.1"


class Peer:
    """One row of the table. A subclass knows one server; `client` names its wire side."""

    name: ClassVar[str]
    client: ClassVar[str]
    # How it is set up, and what to know when its row is compared with ours.
    note: ClassVar[str]
    # Where a packaged server of this kind listens: one that runs beside us disturbs the figures.
    usual_port: ClassVar[int | None] = None
    # As many as it can use well; more would only make it slower.
    most_connections: ClassVar[int] = 1_000
    is_embedded: ClassVar[bool] = False

    @classmethod
    def speaks_sqs(cls) -> bool:
        return cls.client == "sqs"

    def __init__(self) -> None:
        self._servers: list[Server] = []

    def find(self, *, may_install: bool) -> None:
        """Raises MissingError with the reason when this peer cannot be measured here."""

    def start(self, folder: Path) -> Endpoint:
        raise NotImplementedError

    def stop(self) -> None:
        while self._servers:
            self._servers.pop().stop()

    @property
    def pids(self) -> list[int]:
        return [server.pid for server in self._servers]

    def _keep(self, server: Server) -> Server:
        self._servers.append(server)
        return server

    def _serve(self, server: Server, port: int) -> Endpoint:
        """Keeps a server that is ready as soon as its port answers."""
        self._keep(server).wait_until(lambda: is_listening(port))
        return {"host": HOST, "port": port}
