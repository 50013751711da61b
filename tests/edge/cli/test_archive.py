"""`penstock archive` on the store itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.lake import layout as lake
from penstock.domain.message.lifecycle import State
from penstock.settings import Settings
from penstock.settings.values import StoreSettings
from penstock.wiring.broker import migrate, open_broker
from tests.runtime.archiver.driver import rows_of
from tests.store.driver import StoreDriver


class Shop:
    """A store with a queue; the flags that name it."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.settings = Settings(data=str(folder), store=StoreSettings(url=url))
        self.flags = ["--data", str(folder), *(["--store", url] if url else [])]
        self.lake = folder / "lake"
        migrate(self.settings)
        self.do(lambda store_driver: store_driver.queue("mail"))

    def do(self, what: Callable[[StoreDriver], Any]) -> Any:
        broker = open_broker(self.settings)
        try:
            return what(StoreDriver(broker.store, broker.clock))  # type: ignore[arg-type]
        finally:
            broker.close()

    def finish(self, count: int) -> None:
        def do(store_driver: StoreDriver) -> None:
            queue = store_driver.read(lambda s: s.queues.find("mail"))
            assert queue is not None
            store_driver.send_many(queue, count)
            for message in store_driver.claim(queue, count):
                store_driver.complete(message)

        self.do(do)


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    is_sqlite = request.param == "sqlite"
    return Shop(tmp_path / "data", None if is_sqlite else request.getfixturevalue("postgres_url"))


def test_new_history_is_written_and_the_status_shows_the_progress(run, shop):
    shop.finish(3)
    before = run("archive", *shop.flags, "--json").record
    assert (before["is_made"], before["latest"]) == (False, None)
    assert {t["table"]: t["behind"] for t in before["tables"]}["history"] == 3

    first = run("archive", "run", *shop.flags, "--json").record
    again = run("archive", "run", *shop.flags)

    assert (first["rows"]["history"], first["is_final"]) == (3, True)
    assert again.out.startswith("0 history, 0 attempts")
    assert len(rows_of(shop.lake, lake.HISTORY)) == 3
    after = run("archive", "status", *shop.flags, "--json").record
    [history] = [t for t in after["tables"] if t["table"] == "history"]
    assert (after["is_made"], history["rows"], history["behind"]) == (True, 3, 0)
    assert history["written_at"].endswith("Z")
    assert "history" in run("archive", "status", *shop.flags).out


def test_a_snapshot_is_taken_on_request_and_old_ones_are_removed(run, shop):
    shop.do(
        lambda store_driver: store_driver.send(store_driver.read(lambda s: s.queues.find("mail")))
    )
    keep = ["--set", "archive.snapshots=2"]

    taken = [run("archive", "snapshot", *shop.flags, *keep, "--json").record for _ in range(3)]

    assert [t["messages"] for t in taken] == [1, 1, 1]
    assert {row["state"] for row in rows_of(shop.lake, lake.SNAPSHOTS)} == {State.READY}
    status = run("archive", "status", *shop.flags, "--json").record
    assert (status["snapshots"], status["latest"]) == (2, taken[-1])
    assert "messages" in run("archive", "snapshot", *shop.flags).out


def test_a_new_lake_is_started_only_on_request_and_in_its_own_folder(run, shop, tmp_path):
    shop.finish(2)
    run("archive", "run", *shop.flags)
    elsewhere = ["--lake", tmp_path / "other"]

    refused = run("archive", "run", *shop.flags, *elsewhere)
    assert (refused.code, refused.err.endswith("(lake_refused)\n")) == (1, True)
    assert run("archive", "run", "--new-lake", *shop.flags).code == 1, "there is one already"

    assert run("archive", "run", "--new-lake", *shop.flags, *elsewhere).code == 0
    assert len(rows_of(tmp_path / "other", lake.HISTORY)) == 2


def test_without_pyarrow_the_error_names_what_to_install(run, shop, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "penstock.outbound.lake_files", raising=False)
    ran = run("archive", "run", *shop.flags)
    assert (ran.code, "penstock-queue[archive]" in ran.err) == (1, True)


def test_a_lake_in_an_object_store_is_written_like_any_other(run, shop, s3_place):
    shop.finish(3)
    there = [*shop.flags, "--lake", s3_place]

    first = run("archive", "run", *there, "--json").record
    snapshot = run("archive", "snapshot", *there, "--json").record

    assert (first["rows"]["history"], snapshot["snapshot_no"]) == (3, 1)
    status = run("archive", "status", *there, "--json").record
    assert (status["lake"], status["is_made"], status["snapshots"]) == (s3_place, True, 1)
    assert not shop.lake.exists()


def test_an_object_store_out_of_reach_is_one_line_with_a_code(run, shop, s3_place):
    ran = run("archive", "run", *shop.flags, "--lake", "s3://no-such-bucket/lake")

    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.startswith("penstock: s3://no-such-bucket/lake cannot be reached: ")
    assert ran.err.endswith("(lake_unreachable)\n")


def test_any_other_url_is_rejected(run, shop):
    ran = run("archive", "run", *shop.flags, "--lake", "ftp://host/lake")

    assert (ran.code, "ftp://host/lake" in ran.err) == (1, True)
    assert ran.err.endswith("(invalid_request)\n")
