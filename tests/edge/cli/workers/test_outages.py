"""`penstock worker` during outages of its store: one log line at the start, one at the end."""

from __future__ import annotations

import pytest

from penstock.store.postgres.store import migrate
from tests.edge.cli.workers import many_queues_application
from tests.edge.cli.workers.driver import WorkerProcess
from tests.edge.cli.workers.job_lookup import PATIENCE_S
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.support.postgres import PostgresCluster
from tests.support.private_servers import free_port
from tests.support.waiting import eventually

APP = "tests.edge.cli.workers.many_queues_application:app"
PATIENCE = f"{PATIENCE_S:.0f}s"


class Server:
    """A server that can be stopped and started on the same port."""

    def __init__(self, folder) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._settings = some_settings(folder, server={"port": port})
        self._live: LiveServer | None = None

    def start(self) -> None:
        self._live = LiveServer(self._settings).start()

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()


class Database:
    """A PostgreSQL server of its own."""

    def __init__(self) -> None:
        self._cluster = PostgresCluster()
        self._cluster.start()
        self.url = self._cluster.new_database()
        migrate(self.url)
        self._cluster.stop()

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.stop()


@pytest.fixture(params=["postgres", "remote"])
def store(request, tmp_path):
    store = Database() if request.param == "postgres" else Server(tmp_path / "data")
    yield store
    many_queues_application.app.close()
    store.stop()


def test_each_outage_logs_one_line_at_its_start_and_one_at_its_end(store, tmp_path):
    seen = tmp_path / "seen"
    worker = WorkerProcess(store.url, tmp_path / "worker.log", "--processes", "2", app=APP)
    worker.start_only()
    try:
        _soon(worker, "waiting for the store", 1)
        store.start()
        worker.wait_until_ready()
        many_queues_application.app.use(store.url)
        first = many_queues_application.mail.enqueue(str(seen), "first")
        many_queues_application.app.jobs.wait(
            first, timeout=PATIENCE
        )  # otherwise it would end during the outage
        many_queues_application.app.close()

        store.stop()
        _soon(worker, "waiting for the store", 2)
        store.start()
        _soon(worker, "connected to the store after", 2)
        second = many_queues_application.mail.enqueue(str(seen), "second")
        many_queues_application.app.jobs.wait(second, timeout=PATIENCE)
    finally:
        worker.__exit__(None, None, None)

    lines = worker.log.read_text().splitlines()
    troubles = [line for line in lines if " WARNING " in line or " ERROR " in line]
    assert len(troubles) == 2, "\n".join(troubles)
    assert "peak memory" not in worker.log.read_text()
    assert seen.read_text() == "mail first\nmail second\n"


def _soon(worker: WorkerProcess, text: str, times: int) -> None:
    eventually(lambda: worker.log.read_text().count(text) >= times, within_s=PATIENCE_S)
