"""A snapshot shows one instant, however long it takes and whatever happens meanwhile."""

from __future__ import annotations

import json

import pytest

from penstock.domain.errors import ShuttingDown
from penstock.domain.lake import layout as lake
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.runtime.archiver import snapshots as module
from penstock.store.entities import archive as store
from tests.runtime.archiver.driver import ArchiverDriver


def test_a_snapshot_has_all_live_messages_with_their_bodies(driver):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail", max_attempts=1)
    dead = store_driver.send(mail, body='"dead"')
    [held] = store_driver.claim(mail)
    store_driver.act(Verb.FAIL, held, text="broken")
    done = driver.finish(mail)
    leased = store_driver.send(mail)
    store_driver.claim(mail, claimed_by="w1")
    ready = store_driver.send(
        mail, body='{"to": "ü"}', attributes={"x": "y"}, trace="t", kind="letter"
    )
    waiting = store_driver.send(mail, delay_ms=5_000)

    taken = driver.snapshots.take()

    rows = {row["id"]: row for row in driver.rows(lake.SNAPSHOTS)}
    assert {i: row["state"] for i, row in rows.items()} == {
        dead: "dead", leased: "leased", ready: "ready", waiting: "waiting",
    }  # fmt: skip
    assert done[0] not in rows
    assert (taken.rows, taken.taken_at) == (4, store_driver.now)
    row = rows[ready]
    message = store_driver.get(ready)
    assert (row["body"], row["attributes"], row["trace"]) == ('{"to": "ü"}', '{"x":"y"}', "t")
    assert (row["dt"], row["snapshot_no"]) == (lake.dt_of(store_driver.now), str(taken.snapshot_no))
    assert (row["queue"], row["kind"], row["taken_at"]) == ("mail", "letter", store_driver.now)
    assert (row["message_no"], row["order_no"]) == (message.message_no, message.order_no)
    assert (rows[waiting]["due_at"], rows[leased]["leased_by"]) == (store_driver.now + 5_000, "w1")
    assert (rows[dead]["reason"], rows[dead]["last_error"]) == ("attempts_exhausted", "broken")


def test_a_snapshot_has_the_queues_with_their_settings(driver):
    mail = driver.store_driver.queue("mail", max_attempts=7)
    driver.store_driver.pause(driver.store_driver.queue("empty"))

    taken = driver.snapshots.take()

    rows = {row["queue"]: row for row in driver.rows(lake.QUEUES)}
    assert rows["mail"]["queue_no"] == mail.queue_no
    assert json.loads(rows["mail"]["settings"])["max_attempts"] == 7
    assert [rows[name]["is_paused"] for name in ("empty", "mail")] == [True, False]
    assert rows["mail"]["snapshot_no"] == str(taken.snapshot_no)
    assert taken.rows == 0, "an empty snapshot is one, too"
    assert driver.files.snapshots() == [(lake.dt_of(driver.store_driver.now), taken.snapshot_no)]


def test_changes_while_a_snapshot_is_taken_are_not_in_it(driver, monkeypatch):
    """Between two pages: the one that was read ends, the next ends unread, others are sent."""
    monkeypatch.setattr(module, "PAGE", 2)
    store_driver = driver.store_driver
    mail, letters = store_driver.queue("mail", dead_letter_queue="letters", max_attempts=1), None
    letters = store_driver.queue("letters")
    there = store_driver.send_many(mail, 6, body='"b"')
    steps: list[int] = []

    def meanwhile(ms: int) -> None:
        if steps:
            return
        steps.append(ms)
        store_driver.clock.advance(ms=10)
        held = store_driver.claim(mail, 5)
        store_driver.complete(held[0])  # was read
        store_driver.complete(held[3])  # will not be
        store_driver.act(Verb.FAIL, held[4])  # is a dead letter now
        store_driver.send_many(mail, 3)

    driver.snapshots._pause = meanwhile
    taken = driver.snapshots.take()

    rows = driver.rows(lake.SNAPSHOTS)
    assert steps
    assert sorted(row["id"] for row in rows) == sorted(there)
    assert taken.rows == 6
    assert {row["body"] for row in rows} == {'"b"'}
    assert {row["sent_at"] for row in rows} == {taken.taken_at}
    ended = next(row for row in rows if row["id"] == there[3])
    assert (ended["state"], ended["queue"]) == (State.READY, "mail")
    assert store_driver.counts(letters).ready == 1


def test_a_message_that_died_and_ended_elsewhere_is_where_it_was(driver, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 1)
    store_driver = driver.store_driver
    mail = store_driver.queue("mail", dead_letter_queue="letters", max_attempts=1)
    letters = store_driver.queue("letters")
    first, second = store_driver.send_many(mail, 2)

    def meanwhile(ms: int) -> None:
        for held in store_driver.claim(mail, 2):
            store_driver.clock.advance(ms=1)
            store_driver.act(Verb.FAIL, held)
        for held in store_driver.claim(letters, 2):
            store_driver.clock.advance(ms=1)
            store_driver.complete(held)

    driver.snapshots._pause = meanwhile
    driver.snapshots.take()

    found = {row["id"]: row["queue"] for row in driver.rows(lake.SNAPSHOTS)}
    assert found == {first: "mail", second: "mail"}


def test_a_snapshot_becomes_visible_as_a_whole(driver, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    driver.store_driver.send_many(driver.store_driver.queue("mail"), 5)

    def stop(ms: int) -> bool:
        assert driver.rows(lake.SNAPSHOTS) == driver.rows(lake.QUEUES) == []
        return True

    driver.snapshots._pause = stop
    with pytest.raises(ShuttingDown):
        driver.snapshots.take()
    assert driver.rows(lake.SNAPSHOTS) == []
    assert list(driver.folder.glob("**/.tmp*")) == [], "nothing is left behind"

    again = ArchiverDriver(driver.store_driver, driver.folder).snapshots.take()
    assert again.snapshot_no == 2, "a number is not given twice"
    assert len(driver.rows(lake.SNAPSHOTS)) == 5
    latest = driver.store_driver.read(lambda s: s.archive.snapshot())
    assert latest == again


def test_many_messages_go_into_several_files(driver, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(module, "ROWS_PER_FILE", 4)
    ids = driver.store_driver.send_many(driver.store_driver.queue("mail"), 9)
    seen: list[tuple[int, int]] = []

    driver.snapshots.take(lambda done, total: seen.append((done, total)))

    assert sorted(driver.ids(lake.SNAPSHOTS)) == sorted(ids)
    assert len(list((driver.folder / "snapshots").glob("**/*.parquet"))) == 4
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


def test_large_bodies_are_read_in_small_pages_and_all_are_in_the_snapshot(driver, monkeypatch):
    monkeypatch.setattr(store, "MAX_PAGE_BYTES", 1)
    ids = driver.store_driver.send_many(driver.store_driver.queue("mail"), 4)
    pages: list[int] = []

    driver.snapshots.take(lambda done, total: pages.append(done))

    assert sorted(driver.ids(lake.SNAPSHOTS)) == sorted(ids)
    assert len(pages) >= 4, "a page for each"


def test_only_the_latest_snapshots_are_kept(driver):
    driver.store_driver.send(driver.store_driver.queue("mail"))
    numbers = [driver.snapshots.take().snapshot_no for _ in range(4)]

    driver.snapshots.keep_only(2)

    assert [no for _, no in driver.files.snapshots()] == numbers[2:]
    assert {row["snapshot_no"] for row in driver.rows(lake.SNAPSHOTS)} == set(map(str, numbers[2:]))
    assert {row["snapshot_no"] for row in driver.rows(lake.QUEUES)} == set(map(str, numbers[2:]))


def test_a_message_sent_just_after_the_instant_is_left_out(driver):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    there = store_driver.send(mail)
    look = driver.snapshots._read
    later: list[str] = []

    def send_first(what: object) -> object:
        if not later:
            store_driver.clock.advance(ms=1)
            later.append(store_driver.send(mail))
        return look(what)

    driver.snapshots._read = send_first
    driver.snapshots.take()

    assert driver.ids(lake.SNAPSHOTS) == [there]
