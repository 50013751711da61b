"""The job frameworks: where each keeps its jobs, and how one worker process of it is started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from bench import install
from bench.peers.base import HOST
from bench.peers.cluster import Cluster
from bench.processes import Server
from bench.workspace import free_port, is_listening

_PYTHON = sys.executable
_BIN = Path(sys.executable).parent


class Framework:
    name: ClassVar[str]
    note: ClassVar[str]
    app: ClassVar[str]
    package: ClassVar[str]
    jobs: ClassVar[int]  # as many as it does in some seconds

    def __init__(self) -> None:
        self._servers: list[Server] = []

    def find(self, *, may_install: bool) -> None:
        """Raises MissingError with the reason when it cannot be measured here."""
        module = self.app.rpartition(".")[2]
        install.module(module, package=self.package, may_install=may_install)

    def start(self, folder: Path) -> str:
        """Where its jobs are kept."""
        raise NotImplementedError

    def worker(self) -> list[str]:
        raise NotImplementedError

    def stop(self) -> None:
        while self._servers:
            self._servers.pop().stop()


class OnRedis(Framework):
    def find(self, *, may_install: bool) -> None:
        super().find(may_install=may_install)
        names = ["redis-server", "valkey-server"]
        self._redis = install.program(names, packages=names, may_install=may_install)

    def start(self, folder: Path) -> str:
        port = free_port()
        command = [str(self._redis), "--bind", HOST, "--port", str(port), "--dir", str(folder)]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        server = Server(command, folder=folder)
        self._servers.append(server)
        server.wait_until(lambda: is_listening(port))
        return f"redis://{HOST}:{port}/0"


class OnPostgres(Framework):
    def find(self, *, may_install: bool) -> None:
        super().find(may_install=may_install)
        self._cluster = Cluster(may_install=may_install)

    def start(self, folder: Path) -> str:
        server, url = self._cluster.start(folder)
        self._servers.append(server)
        return url


class PenstockSqlite(Framework):
    name = "penstock (sqlite)"
    note = "penstock worker --slots 10; every job synced when it is enqueued and when it is done"
    app = "bench.jobs.apps.penstock"
    package = "penstock"
    jobs = 30_000

    def start(self, folder: Path) -> str:
        return f"sqlite:///{folder}/jobs.db"

    def worker(self) -> list[str]:
        return [_PYTHON, "-m", "penstock", "worker", f"{self.app}:app", "--slots", "10"]


class PenstockPostgres(OnPostgres):
    name = "penstock (postgresql)"
    note = "the same on PostgreSQL with its default settings"
    app = PenstockSqlite.app
    package = "penstock-queue[postgres]"
    jobs = 30_000

    def worker(self) -> list[str]:
        return [_PYTHON, "-m", "penstock", "worker", f"{self.app}:app", "--slots", "10"]


class CeleryRedis(OnRedis):
    name = "celery (redis)"
    note = "one prefork child, acks_late, no results; Redis with appendfsync always"
    app = "bench.jobs.apps.celery"
    package = "celery[redis]"
    jobs = 3_000

    def worker(self) -> list[str]:
        command = [_PYTHON, "-m", "celery", "-A", self.app, "worker", "--concurrency", "1"]
        return [*command, "--loglevel", "WARNING", "--without-gossip", "--without-mingle"]


class Rq(OnRedis):
    name = "rq (redis)"
    note = "rq worker, which forks for every job; Redis with appendfsync always"
    app = "bench.jobs.apps.rq"
    package = "rq"
    jobs = 400

    def worker(self) -> list[str]:
        return [str(_BIN / "rq"), "worker", "--quiet", "--url", "$BENCH_URL", "bench"]


class Dramatiq(OnRedis):
    name = "dramatiq (redis)"
    note = "one process with 8 threads, as is its default; Redis with appendfsync always"
    app = "bench.jobs.apps.dramatiq"
    package = "dramatiq[redis]"
    jobs = 3_000

    def worker(self) -> list[str]:
        return [_PYTHON, "-m", "dramatiq", self.app, "--processes", "1", "--threads", "8"]


class Huey(Framework):
    name = "huey (sqlite)"
    note = "SqliteHuey with fsync, one worker thread, which is its default"
    app = "bench.jobs.apps.huey"
    package = "huey"
    jobs = 1_000

    def start(self, folder: Path) -> str:
        return str(folder / "huey.db")

    def worker(self) -> list[str]:
        return [_PYTHON, "-m", "huey.bin.huey_consumer", f"{self.app}.huey", "--quiet"]


class Procrastinate(OnPostgres):
    name = "procrastinate (postgresql)"
    note = "one worker, --concurrency 10; PostgreSQL with its default settings"
    app = "bench.jobs.apps.procrastinate"
    package = "procrastinate"
    jobs = 2_000

    def worker(self) -> list[str]:
        command = [_PYTHON, "-m", "procrastinate", f"--app={self.app}.app", "worker"]
        return [*command, "--queues", "bench", "--concurrency", "10"]


FRAMEWORKS: tuple[type[Framework], ...] = (
    PenstockSqlite,
    PenstockPostgres,
    CeleryRedis,
    Rq,
    Dramatiq,
    Huey,
    Procrastinate,
)
