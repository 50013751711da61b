"""A snapshot is of one instant, however long it takes and whatever happens meanwhile."""

from __future__ import annotations

import json

import pytest

from penstock.domain.errors import ShuttingDown
from penstock.domain.lake import layout as lake
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.runtime.archiver import snapshots as module
from penstock.store.nouns import archive as store
from tests.runtime.archiver.rig import Rig


def test_a_snapshot_holds_whatever_has_not_ended_with_its_body(rig):
    desk = rig.desk
    mail = desk.queue("mail", max_attempts=1)
    dead = desk.send(mail, body='"dead"')
    [held] = desk.claim(mail)
    desk.act(Verb.FAIL, held, text="broken")
    done = rig.finish(mail)
    leased = desk.send(mail)
    desk.claim(mail, claimed_by="w1")
    ready = desk.send(mail, body='{"to": "ü"}', attributes={"x": "y"}, trace="t", kind="letter")
    waiting = desk.send(mail, delay_ms=5_000)

    taken = rig.snapshots.take()

    rows = {row["id"]: row for row in rig.rows(lake.SNAPSHOTS)}
    assert {i: row["state"] for i, row in rows.items()} == {
        dead: "dead", leased: "leased", ready: "ready", waiting: "waiting",
    }  # fmt: skip
    assert done[0] not in rows
    assert (taken.rows, taken.taken_at) == (4, desk.now)
    row = rows[ready]
    message = desk.get(ready)
    assert (row["body"], row["attributes"], row["trace"]) == ('{"to": "ü"}', '{"x":"y"}', "t")
    assert (row["dt"], row["snapshot_no"]) == (lake.dt_of(desk.now), str(taken.snapshot_no))
    assert (row["queue"], row["kind"], row["taken_at"]) == ("mail", "letter", desk.now)
    assert (row["message_no"], row["order_no"]) == (message.message_no, message.order_no)
    assert (rows[waiting]["due_at"], rows[leased]["leased_by"]) == (desk.now + 5_000, "w1")
    assert (rows[dead]["reason"], rows[dead]["last_error"]) == ("attempts_exhausted", "broken")


def test_the_queues_are_in_it_with_their_settings(rig):
    mail = rig.desk.queue("mail", max_attempts=7)
    rig.desk.pause(rig.desk.queue("empty"))

    taken = rig.snapshots.take()

    rows = {row["queue"]: row for row in rig.rows(lake.QUEUES)}
    assert rows["mail"]["queue_no"] == mail.queue_no
    assert json.loads(rows["mail"]["settings"])["max_attempts"] == 7
    assert [rows[name]["is_paused"] for name in ("empty", "mail")] == [True, False]
    assert rows["mail"]["snapshot_no"] == str(taken.snapshot_no)
    assert taken.rows == 0, "an empty snapshot is one, too"
    assert rig.files.snapshots() == [(lake.dt_of(rig.desk.now), taken.snapshot_no)]


def test_what_happens_while_it_is_taken_does_not_show(rig, monkeypatch):
    """Between two pages: the one that was read ends, the next ends unread, others are sent."""
    monkeypatch.setattr(module, "PAGE", 2)
    desk = rig.desk
    mail, letters = desk.queue("mail", dead_letter_queue="letters", max_attempts=1), None
    letters = desk.queue("letters")
    there = desk.send_many(mail, 6, body='"b"')
    steps: list[int] = []

    def meanwhile(ms: int) -> None:
        if steps:
            return
        steps.append(ms)
        desk.clock.advance(ms=10)
        held = desk.claim(mail, 5)
        desk.complete(held[0])  # was read
        desk.complete(held[3])  # will not be
        desk.act(Verb.FAIL, held[4])  # is a dead letter now
        desk.send_many(mail, 3)

    rig.snapshots._pause = meanwhile
    taken = rig.snapshots.take()

    rows = rig.rows(lake.SNAPSHOTS)
    assert steps
    assert sorted(row["id"] for row in rows) == sorted(there)
    assert taken.rows == 6
    assert {row["body"] for row in rows} == {'"b"'}
    assert {row["sent_at"] for row in rows} == {taken.taken_at}
    ended = next(row for row in rows if row["id"] == there[3])
    assert (ended["state"], ended["queue"]) == (State.READY, "mail")
    assert desk.counts(letters).ready == 1


def test_one_that_died_and_ended_elsewhere_unread_is_where_it_was(rig, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 1)
    desk = rig.desk
    mail = desk.queue("mail", dead_letter_queue="letters", max_attempts=1)
    letters = desk.queue("letters")
    first, second = desk.send_many(mail, 2)

    def meanwhile(ms: int) -> None:
        for held in desk.claim(mail, 2):
            desk.clock.advance(ms=1)
            desk.act(Verb.FAIL, held)
        for held in desk.claim(letters, 2):
            desk.clock.advance(ms=1)
            desk.complete(held)

    rig.snapshots._pause = meanwhile
    rig.snapshots.take()

    found = {row["id"]: row["queue"] for row in rig.rows(lake.SNAPSHOTS)}
    assert found == {first: "mail", second: "mail"}


def test_a_snapshot_is_seen_as_a_whole_or_not_at_all(rig, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    rig.desk.send_many(rig.desk.queue("mail"), 5)

    def stop(ms: int) -> bool:
        assert rig.rows(lake.SNAPSHOTS) == rig.rows(lake.QUEUES) == []
        return True

    rig.snapshots._pause = stop
    with pytest.raises(ShuttingDown):
        rig.snapshots.take()
    assert rig.rows(lake.SNAPSHOTS) == []
    assert list(rig.folder.glob("**/.tmp*")) == [], "nothing is left behind"

    again = Rig(rig.desk, rig.folder).snapshots.take()
    assert again.snapshot_no == 2, "a number is not given twice"
    assert len(rig.rows(lake.SNAPSHOTS)) == 5
    latest = rig.desk.read(lambda s: s.archive.snapshot())
    assert latest == again


def test_many_messages_go_into_several_files(rig, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(module, "ROWS_PER_FILE", 4)
    ids = rig.desk.send_many(rig.desk.queue("mail"), 9)
    seen: list[tuple[int, int]] = []

    rig.snapshots.take(lambda done, total: seen.append((done, total)))

    assert sorted(rig.ids(lake.SNAPSHOTS)) == sorted(ids)
    assert len(list((rig.folder / "snapshots").glob("**/*.parquet"))) == 4
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


def test_large_bodies_are_read_few_at_a_time_and_all_are_in_it(rig, monkeypatch):
    monkeypatch.setattr(store, "MAX_PAGE_BYTES", 1)
    ids = rig.desk.send_many(rig.desk.queue("mail"), 4)
    pages: list[int] = []

    rig.snapshots.take(lambda done, total: pages.append(done))

    assert sorted(rig.ids(lake.SNAPSHOTS)) == sorted(ids)
    assert len(pages) >= 4, "a page for each"


def test_only_the_latest_snapshots_are_kept(rig):
    rig.desk.send(rig.desk.queue("mail"))
    numbers = [rig.snapshots.take().snapshot_no for _ in range(4)]

    rig.snapshots.keep_only(2)

    assert [no for _, no in rig.files.snapshots()] == numbers[2:]
    assert {row["snapshot_no"] for row in rig.rows(lake.SNAPSHOTS)} == set(map(str, numbers[2:]))
    assert {row["snapshot_no"] for row in rig.rows(lake.QUEUES)} == set(map(str, numbers[2:]))


def test_what_is_sent_just_after_the_instant_is_left_out(rig):
    desk = rig.desk
    mail = desk.queue("mail")
    there = desk.send(mail)
    look = rig.snapshots._read
    later: list[str] = []

    def send_first(what: object) -> object:
        if not later:
            desk.clock.advance(ms=1)
            later.append(desk.send(mail))
        return look(what)

    rig.snapshots._read = send_first
    rig.snapshots.take()

    assert rig.ids(lake.SNAPSHOTS) == [there]
