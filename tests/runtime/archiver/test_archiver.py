"""What the archiver writes, and that it writes each row once."""

from __future__ import annotations

import json
import os

import pyarrow.parquet as pq
import pytest

from penstock.domain.errors import LakeRefused, ShuttingDown
from penstock.domain.lake import layout as lake
from penstock.domain.lake.progress import ALL_DAYS, ArchiveSource, Mark
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.lease import Verb
from penstock.outbound.lake_files import schema_of
from penstock.ports.archive import LakePage
from penstock.ports.store import Session
from penstock.runtime.archiver import archiver as module
from penstock.store.entities import archive as store
from tests.runtime.archiver.driver import ArchiverDriver


def later_columns(table: lake.LakeTable) -> list[str]:
    """Of flows, steps and results."""
    return [column.name for column in table.columns if column.since > 1]


def test_endings_are_written_with_all_their_columns(driver):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail", max_attempts=1)
    sent_at = store_driver.now
    message_id = store_driver.send(
        mail, body='{"to": "ü"}', kind="letter", entity_id="e", tags=("a", "b"), group="g",
        priority=3, attributes={"x": "y"}, trace="t", route="r", dedup_key="k",
    )  # fmt: skip
    store_driver.clock.advance(ms=10)
    [held] = store_driver.claim(mail, claimed_by="w1")
    store_driver.clock.advance(ms=5)
    store_driver.act(Verb.FAIL, held, text="broken")

    driver.run()

    [row] = driver.rows(lake.HISTORY)
    assert row == {
        "dt": lake.dt_of(store_driver.now), "history_no": 1, "message_no": held.message_no,
        "id": message_id, "queue_no": mail.queue_no, "queue": "mail", "outcome": "dead",
        "reason": "attempts_exhausted", "kind": "letter", "entity_id": "e", "tag1": "a",
        "tag2": "b", "group_key": "g", "priority": 3, "sent_at": sent_at, "due_at": held.due_at,
        "first_leased_at": sent_at + 10, "leased_at": sent_at + 10, "finished_at": sent_at + 15,
        "attempts": 1, "failures": 1, "crashes": 0, "lease_no": 1, "leased_by": "w1",
        "last_error": "broken", "size": 12, "route": "r", "held_key": None,
    } | dict.fromkeys(later_columns(lake.HISTORY))  # fmt: skip
    [body] = driver.rows(lake.BODIES)
    assert body == {
        "dt": row["dt"], "history_no": 1, "message_no": held.message_no, "id": message_id,
        "finished_at": row["finished_at"], "body": '{"to": "ü"}', "attributes": '{"x":"y"}',
        "trace": "t", "result": None,
    }  # fmt: skip
    [attempt] = driver.rows(lake.ATTEMPTS)
    assert attempt == {
        "dt": row["dt"], "attempt_no": 1, "message_no": held.message_no, "id": message_id,
        "queue_no": mail.queue_no, "queue": "mail", "lease_no": 1, "outcome": "failed",
        "leased_at": sent_at + 10, "ended_at": sent_at + 15, "leased_by": "w1", "error": "broken",
    } | dict.fromkeys(later_columns(lake.ATTEMPTS))  # fmt: skip


def test_facts_are_written_to_their_day(driver):
    store_driver = driver.store_driver
    store_driver.write(lambda s: s.facts.add("a", "x", at=store_driver.now, data={"n": 1}))
    store_driver.write(lambda s: s.facts.add("b", "y", at=store_driver.now - DAY, data={}))

    driver.run()

    found = {(row["dt"], row["kind"], row["subject"], row["at"]) for row in driver.rows(lake.FACTS)}
    yesterday, today = lake.dt_of(store_driver.now - DAY), lake.dt_of(store_driver.now)
    assert found == {
        (today, "a", "x", store_driver.now),
        (yesterday, "b", "y", store_driver.now - DAY),
    }
    assert {json.loads(row["data"]).get("n") for row in driver.rows(lake.FACTS)} == {1, None}


def test_a_second_run_writes_only_what_is_new(driver):
    mail = driver.store_driver.queue("mail")
    first = driver.finish(mail, 3)
    assert driver.run().rows["history"] == 3
    assert driver.run().rows["history"] == 0
    second = driver.finish(mail, 2)

    assert driver.run().rows["history"] == 2

    assert sorted(driver.ids(lake.HISTORY)) == sorted(first + second)
    assert sorted(driver.ids(lake.BODIES)) == sorted(first + second)


def test_files_are_zstd_with_the_schema_and_its_version(driver):
    driver.finish(driver.store_driver.queue("mail"))
    driver.run()

    [path] = (driver.folder / "history").glob("**/*.parquet")
    file = pq.ParquetFile(path)
    assert file.schema_arrow.equals(schema_of(lake.HISTORY))
    assert file.metadata.metadata[lake.VERSION_KEY.encode()] == b"1"
    group = file.metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}
    assert path.parent.name == f"dt={lake.dt_of(driver.store_driver.now)}"


def test_lake_files_are_readable_by_their_owner_only(driver):
    driver.finish(driver.store_driver.queue("mail"))
    driver.run()

    paths = [path for path in driver.folder.glob("**/*") if path.is_file()]
    assert paths
    assert {path.stat().st_mode & 0o077 for path in (*paths, driver.folder)} == {0}


def test_large_amounts_go_into_several_files_and_are_read_in_short_pages(driver, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 3)
    driver = ArchiverDriver(driver.store_driver, driver.folder, rows_per_file=10)
    ids = driver.finish(driver.store_driver.queue("mail"), 25)
    done: list[tuple[int, int]] = []

    archived = driver.archiver.run(lambda now, total: done.append((now, total)))

    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids)
    names = sorted(path.name for path in (driver.folder / "history").glob("*/*.parquet"))
    assert [int(name.split("-")[1]) for name in names] == [1, 11, 21]
    assert archived.rows["history"] == 25
    assert done == sorted(done)
    assert done[-1][0] == done[-1][1] >= 25


def test_large_bodies_are_read_few_at_a_time_and_all_are_written(driver, monkeypatch):
    monkeypatch.setattr(store, "MAX_PAGE_BYTES", 1)
    ids = driver.finish(driver.store_driver.queue("mail"), 4)
    done: list[int] = []

    driver.archiver.run(lambda now, total: done.append(now))

    assert sorted(driver.ids(lake.HISTORY)) == sorted(driver.ids(lake.BODIES)) == sorted(ids)
    assert len(done) >= 4, "a page for each"


@pytest.mark.parametrize("step", ["plan", "add", "keep", "move"])
def test_a_run_stopped_at_any_step_leaves_the_rest_to_the_next(driver, monkeypatch, step):
    mail = driver.store_driver.queue("mail")
    ids = driver.finish(mail, 5)

    def stopped(*_args: object, **_more: object) -> None:
        raise ShuttingDown("just here")

    with monkeypatch.context() as broken:
        if step in ("plan", "move"):
            broken.setattr(f"penstock.store.entities.archive.SqlArchive.{step}", stopped)
        else:
            broken.setattr(f"penstock.outbound.lake_files._File.{step}", stopped)
        with pytest.raises(ShuttingDown):
            driver.run()
    ids += driver.finish(mail, 4)

    driver.run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids)
    assert sorted(driver.ids(lake.BODIES)) == sorted(ids)


def test_a_plan_is_kept_so_that_an_earlier_file_is_not_duplicated(driver, monkeypatch):
    mail = driver.store_driver.queue("mail")
    ids = driver.finish(mail, 5)
    with monkeypatch.context() as broken:
        broken.setattr(module, "_move", lambda before, after: lambda session: 1 / 0)
        with pytest.raises(Exception, match="division"):
            driver.run()
    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids), "the file has its name already"
    ids += driver.finish(mail, 4)

    driver.run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids)


def test_two_concurrent_archivers_write_each_row_once(driver, monkeypatch):
    mail = driver.store_driver.queue("mail")
    ids = driver.finish(mail, 5)
    other = ArchiverDriver(driver.store_driver, driver.folder)
    keep = module._Files.keep
    raced: list[int] = []

    def keep_after_the_other(files: module._Files) -> int:
        if not raced:
            raced.append(1)
            ids.extend(driver.finish(mail, 2))
            other.run()
        return keep(files)

    monkeypatch.setattr(module._Files, "keep", keep_after_the_other)
    driver.run()
    driver.run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids)
    mark = driver.store_driver.read(
        lambda s: s.archive.mark(ArchiveSource.HISTORY, driver.store_driver.now // DAY)
    )
    assert (mark.rows_total, mark.done_no) == (7, 7)


def test_a_file_is_not_visible_before_it_is_complete(driver, monkeypatch):
    driver.finish(driver.store_driver.queue("mail"), 3)
    seen: list[int] = []
    add = module._Files.add

    def look(files: module._Files, page: LakePage) -> None:
        add(files, page)
        seen.append(len(driver.rows(lake.HISTORY)) + len(driver.rows(lake.BODIES)))

    monkeypatch.setattr(module._Files, "add", look)
    driver.run()

    assert set(seen) == {0} or seen[0] == 0
    assert list(driver.folder.glob("**/.tmp*")) == [], "nothing is left behind"


def test_leftover_files_are_removed_after_a_day(driver, clock):
    driver.finish(driver.store_driver.queue("mail"))
    driver.run()
    left = driver.folder / "history" / f"dt={lake.dt_of(clock.now())}" / ".tmp-00-history"
    left.write_bytes(b"half")
    (driver.folder / "snapshots" / "dt=2026-01-01" / ".tmp-00-3").mkdir(parents=True)

    os.utime(left, (0, 0))

    assert driver.files.tidy(older_ms=DAY) == 1
    assert not left.exists()
    assert driver.files.tidy(older_ms=-DAY) == 1


def test_without_bodies_only_history_is_written(driver):
    driver = ArchiverDriver(driver.store_driver, driver.folder, with_bodies=False)
    driver.finish(driver.store_driver.queue("mail"))
    driver.run()
    assert len(driver.rows(lake.HISTORY)) == 1
    assert driver.rows(lake.BODIES) == []


def test_days_are_closed_when_they_are_over_and_written(driver):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    driver.finish(mail)
    day = store_driver.now // DAY

    def is_closed() -> bool:
        marks = store_driver.read(lambda s: s.archive.marks())
        return {m.source for m in marks if m.day == day and m.is_closed} == {
            ArchiveSource.HISTORY, ArchiveSource.ATTEMPTS,
        }  # fmt: skip

    driver.run()
    assert not is_closed()
    store_driver.clock.advance(days=2)
    driver.finish(mail)
    driver.run()
    assert is_closed()
    position = store_driver.read(lambda s: s.archive.position())
    assert (ArchiveSource.HISTORY, day) not in position.cut, "it is not looked at any more"
    assert len(driver.rows(lake.HISTORY)) == 2


def test_counters_are_sampled_once_a_minute_for_queues_that_have_or_had_messages(driver):
    store_driver = driver.store_driver
    busy, idle = store_driver.queue("busy"), store_driver.queue("idle")
    store_driver.send(busy)
    driver.finish(idle)
    for _ in range(2):
        driver.sampler.tick(store_driver.now)
    first_at = store_driver.now
    store_driver.clock.advance(ms=MINUTE)
    driver.sampler.tick(store_driver.now)

    driver.run()

    rows = driver.rows(lake.BACKLOG)
    assert [(row["at"], row["queue"]) for row in rows] == [
        (first_at, "busy"), (first_at, "idle"), (store_driver.now, "busy"),
    ]  # fmt: skip
    assert (rows[0]["ready"], rows[0]["sent_total"], rows[0]["queue_no"]) == (1, 1, busy.queue_no)
    assert (rows[1]["ready"], rows[1]["done_total"], rows[1]["claimed_total"]) == (0, 1, 1)
    for row in rows:
        ended = row["done_total"] + row["dead_total"] + row["cancelled_total"]
        assert row["sent_total"] == row["waiting"] + row["ready"] + row["leased"] + ended


def test_a_queue_that_was_emptied_has_a_last_sample_of_zero(driver):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    store_driver.send_many(mail, 5)
    driver.sampler.tick(store_driver.now)
    for _ in range(3):
        store_driver.clock.advance(ms=MINUTE)
        store_driver.write(
            lambda s: s.messages.purge(mail.queue_no, limit=10, now=store_driver.now)
        )
        driver.sampler.tick(store_driver.now)

    driver.run()

    assert [row["ready"] for row in driver.rows(lake.BACKLOG)] == [5, 0]


def test_a_lake_of_another_store_is_refused(driver):
    driver.run()
    text = (driver.folder / lake.MARKER).read_text()
    (driver.folder / lake.MARKER).write_text(text.replace('"lake_id":"', '"lake_id":"x'))
    with pytest.raises(LakeRefused, match="another store"):
        driver.run()


def test_a_lake_that_is_gone_is_not_replaced_silently(driver, tmp_path):
    driver.finish(driver.store_driver.queue("mail"))
    driver.run()
    elsewhere = ArchiverDriver(driver.store_driver, tmp_path / "elsewhere")
    with pytest.raises(LakeRefused, match="--new-lake"):
        elsewhere.run()

    driver.store_driver.write(lambda s: s.archive.begin_new_lake())
    elsewhere.run()

    assert elsewhere.ids(lake.HISTORY) == driver.ids(lake.HISTORY)
    with pytest.raises(LakeRefused):
        driver.run()


def test_a_restored_store_does_not_overwrite_rows_of_the_lake(driver):
    mail = driver.store_driver.queue("mail")
    driver.finish(mail, 5)
    driver.run()
    day = driver.store_driver.now // DAY
    before = driver.store_driver.read(lambda s: s.archive.mark(ArchiveSource.HISTORY, day))
    driver.finish(mail, 2)
    driver.run()

    def put_back(session: Session) -> None:
        session.db.run("archive.forget_marks")  # type: ignore[attr-defined]
        session.archive.plan(Mark(ArchiveSource.HISTORY, day, 0, before.done_no))
        session.archive.move(Mark(ArchiveSource.HISTORY, day, 0, before.done_no), before)

    driver.store_driver.write(put_back)
    driver.finish(mail, 9)

    with pytest.raises(LakeRefused, match="restored from an older copy"):
        driver.run()


def test_a_lake_of_a_later_version_is_refused(driver):
    driver.run()
    text = (driver.folder / lake.MARKER).read_text()
    (driver.folder / lake.MARKER).write_text(
        text.replace('"schema_version":1', '"schema_version":2')
    )
    with pytest.raises(LakeRefused, match="version 2"):
        driver.run()


def test_an_archiver_stops_between_two_pages(driver, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    driver.finish(driver.store_driver.queue("mail"), 5)
    driver.archiver._pause = lambda ms: True
    with pytest.raises(ShuttingDown):
        driver.run()
    assert driver.rows(lake.HISTORY) == []
    assert list(driver.folder.glob("**/.tmp*")) == []


def test_facts_have_one_mark_for_all_days(driver):
    driver.store_driver.write(lambda s: s.facts.add("a", "x", at=driver.store_driver.now, data={}))
    driver.run()
    mark = driver.store_driver.read(lambda s: s.archive.mark(ArchiveSource.FACTS, ALL_DAYS))
    assert (mark.done_no, mark.rows_total, mark.moved_at) == (
        mark.planned_no,
        1,
        driver.store_driver.now,
    )
