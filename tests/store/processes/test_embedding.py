"""Several processes that embed a store in the application's own file, with its transactions."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from penstock.store.store import SqlStore
from tests.faults.figures import figure
from tests.store.processes.peer import Peer
from tests.store.processes.test_side_by_side import all_ids, assert_sound, drain

EACH = 8
KILLS = figure(3, 60)

Start = Callable[[], Peer]


@pytest.fixture
def has_checksums() -> bool:
    return False


def orders(folder: Path) -> dict[str, int]:
    """How often each order was handled."""
    with closing(sqlite3.connect(folder / "penstock.db")) as db:
        found = db.execute("SELECT id, is_done FROM orders").fetchall()
    assert len(dict(found)) == len(found)
    return dict(found)


def test_workers_and_applications_work_side_by_side_without_errors(
    start: Start, folder: Path
) -> None:
    shops = [start().ready()]
    shops[0].ask("make_queue")
    shops += [start().ready() for _ in range(2)]
    worker = start().ready()

    for shop in shops:
        shop.send("trade", count=EACH)
    worker.send("turn_over", count=EACH)
    report = [peer.answer() for peer in [*shops, worker]]
    rest = drain(worker)

    assert [one["errors"] for one in report] == [[]] * len(report)
    sent = [one for part in report for one in part["sent"]]
    completed = [one for part in report for one in part["completed"]] + rest
    assert len(completed) == len(set(completed)) == len(sent)
    assert [peer.close() for peer in [*shops, worker]] == [""] * len(report)
    in_shops = {one for part in report[:-1] for one in part["sent"]}
    by_shops = {one for part in report[:-1] for one in part["completed"]}
    assert orders(folder) == {one: int(one in by_shops) for one in in_shops}
    assert_sound(folder)


@pytest.mark.parametrize("seed", range(figure(1, 2)))
def test_an_application_that_is_killed_leaves_both_or_neither_and_does_not_stop_others(
    start: Start, open_another: Callable[[], SqlStore], folder: Path, seed: int
) -> None:
    dice = random.Random(seed)
    start().ready().ask("make_queue")
    peers = [start().ready() for _ in range(3)]
    sent: set[str] = set()
    completed: list[str] = []

    def note(report: dict[str, list[str]]) -> None:
        sent.update(report.get("sent", ()))
        completed.extend(report.get("completed", ()))

    for peer in peers:
        peer.send("work_in_transactions")
    for _ in range(KILLS):
        for peer in peers:
            note(peer.answer())
        victim = dice.randrange(len(peers))
        for _ in range(dice.randrange(6)):
            note(peers[victim].answer())
        for report in peers[victim].kill():
            note(report)
        peers[victim] = start().ready()  # while the others work
        peers[victim].send("work_in_transactions")
    for peer in peers:
        for report in peer.kill():
            note(report)

    store = open_another()
    live, ended = all_ids(store)
    store.close()
    kept = orders(folder)
    assert kept.keys() == live | set(ended), "an order without its message, or the other way round"
    assert {one for one, is_done in kept.items() if is_done} == set(ended)
    assert sent <= kept.keys(), "an acknowledged order is lost"
    assert len(completed) == len(set(completed))
    assert set(completed) <= set(ended), "a completion was lost"
    assert max(kept.values()) == 1
    assert_sound(folder)
