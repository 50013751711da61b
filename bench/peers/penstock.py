"""Ours: `penstock serve`, on SQLite, PostgreSQL and MariaDB, asked natively and as SQS."""

from __future__ import annotations

import http.client
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from bench.clients.base import Endpoint
from bench.install import MissingError
from bench.peers.base import HOST, Peer
from bench.peers.cluster import Cluster
from bench.peers.mariadb import MariadbInstance
from bench.processes import Server, StartError
from bench.workspace import free_port

# Another build can be measured with the same harness by naming its command here.
COMMAND = "BENCH_PENSTOCK"


class Penstock(Peer):
    name = "penstock"
    client = "penstock"
    note = "SQLite; sends and completions are synced before the answer, claims committed unsynced"

    def find(self, *, may_install: bool) -> None:
        beside = Path(sys.executable).with_name("penstock")
        found = str(beside) if beside.exists() else shutil.which("penstock") or ""
        self._command = shlex.split(os.environ.get(COMMAND, found))
        if not self._command:
            raise MissingError("no penstock command: install the package in this environment")

    def start(self, folder: Path) -> Endpoint:
        data = folder / "data"
        data.mkdir(exist_ok=True)
        return self._start(folder, ["--data", str(data)])

    def resident_mb(self) -> float:
        return self._servers[-1].resident_mb()

    def _start(self, folder: Path, where: list[str]) -> Endpoint:
        port = free_port()
        command = [*self._command, "serve", *where, "--port", str(port)]
        server = self._keep(Server(command, folder=folder))
        self.start_seconds = server.wait_until(lambda: is_ready(port), within=120)
        return {"host": HOST, "port": port}


class PenstockOnPostgres(Penstock):
    name = "penstock on postgresql"
    note = "as above, in a private cluster with default settings"

    def find(self, *, may_install: bool) -> None:
        super().find(may_install=may_install)
        self._cluster = Cluster(may_install=may_install)

    def start(self, folder: Path) -> Endpoint:
        server, url = self._start_database(folder)
        self._keep(server)
        migrate = [*self._command, "migrate", "--store", url]
        done = subprocess.run(migrate, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StartError(f"penstock migrate: {done.stderr.strip()[-400:]}")
        return self._start(folder, ["--store", url])

    def _start_database(self, folder: Path) -> tuple[Server, str]:
        return self._cluster.start(folder)


class PenstockOnMariadb(PenstockOnPostgres):
    name = "penstock on mariadb"
    note = "as above, on a private MariaDB with default settings; claims are synced, too"

    def find(self, *, may_install: bool) -> None:
        Penstock.find(self, may_install=may_install)
        self._instance = MariadbInstance(may_install=may_install)

    def _start_database(self, folder: Path) -> tuple[Server, str]:
        return self._instance.start(folder)


class PenstockSqs(Penstock):
    name = "penstock sqs"
    client = "sqs"
    note = "the same server on SQLite, asked in AWS JSON 1.0; synced as the native API is"


class PenstockSqsOnPostgres(PenstockOnPostgres):
    name = "penstock sqs on postgresql"
    client = "sqs"


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
