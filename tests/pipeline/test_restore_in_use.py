"""Restores into a store that a server process uses, while a worker process receives messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.settings import Settings
from penstock.wiring import archive_commands
from tests.edge.api import Api
from tests.edge.cli.workers import application
from tests.edge.cli.workers.driver import WorkerProcess
from tests.edge.process import ServerProcess
from tests.pipeline.test_restore_commands import now_of, run
from tests.support.waiting import eventually

__all__ = ["run"]

pytestmark = pytest.mark.slow
PATIENCE_S = 60.0


class Shop:
    """A server and its store, with a worker that notes which jobs it has run."""

    def __init__(self, server: ServerProcess, store: list[Any], notes: Path) -> None:
        self.url = server.url
        self.store = store
        self._notes = notes

    def wait_for(self, *texts: str) -> None:
        eventually(lambda: set(texts) <= set(self.seen()), within_s=PATIENCE_S)

    def seen(self) -> list[str]:
        return self._notes.read_text().split() if self._notes.exists() else []


@contextmanager
def use(url: str) -> Iterator[None]:
    """Enqueue jobs of the application in this store, or through this server."""
    application.app.use(url)
    try:
        yield
    finally:
        application.app.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, notes: Path) -> Iterator[Shop]:
    data = tmp_path / "data"
    url = request.getfixturevalue("migrated_url") if request.param == "postgres" else None
    store = ["--data", data] if url is None else ["--store", url, "--data", data]
    with (
        ServerProcess(data, store=url) as server,
        WorkerProcess(server.url, tmp_path / "worker.log", "--slots", "2"),
    ):
        yield Shop(server, store, notes)


@pytest.fixture
def lake(tmp_path: Path, notes: Path) -> Path:
    """The lake of a store that was lost with all its jobs, each of which notes its name."""
    folder = tmp_path / "old"
    jobs = application.write, application.write_async
    with use(f"sqlite:///{folder}/penstock.db"):
        jobs[0].enqueue(str(notes), "plain")
        jobs[1].enqueue(str(notes), "async")
        jobs[0].using(tags=["tenant-7"]).enqueue(str(notes), "tagged")
        jobs[0].using(group="tenant-8").enqueue(str(notes), "grouped")
        jobs[1].using(queue="other").enqueue(str(notes), "elsewhere")
    settings = Settings(data=str(folder))
    archive_commands.run(settings, new_lake=False, progress=lambda done, total: None)
    archive_commands.snapshot(settings, progress=lambda done, total: None)
    return folder


def test_a_tag_a_group_a_kind_and_a_queue_are_restored_while_a_worker_runs(
    run, lake: Path, shop: Shop, notes: Path
):
    words = ["pipeline", "restore", "--at", now_of(lake), "--lake", lake / "lake", *shop.store]

    assert run(*words, "--tag", "tenant-7")[-1]["restored"] == 1
    shop.wait_for("tagged")
    assert run(*words, "--group", "tenant-8")[-1]["restored"] == 1
    shop.wait_for("grouped")
    assert (
        run(*words, "--kind", application.write_async.kind, "--queue", "shop")[-1]["restored"] == 1
    )
    shop.wait_for("async")
    assert sorted(shop.seen()) == ["async", "grouped", "tagged"]

    rest = run(*words, "--queue", "shop")[-1]
    with use(shop.url):
        application.write.enqueue(str(notes), "new")
    shop.wait_for("plain", "new")

    # Jobs that ran since they were restored are not restored again.
    assert (rest["restored"], rest["known"]) == (1, 3)
    again = run(*words)[-1]
    assert (again["restored"], again["known"]) == (1, 4)
    assert sorted(shop.seen()) == ["async", "grouped", "new", "plain", "tagged"]
    assert Api(shop.url).get("/v1/queues/other")["counts"]["ready"] == 1
