"""Several processes on one file: nothing is lost, done twice or refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.domain.message.history import HistoryFilter
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Browse, Session
from penstock.store.maintenance.sqlite_checks import examine
from penstock.store.store import SqlStore
from tests.clocks import NOON
from tests.faults.figures import figure
from tests.store.processes.peer import Peer

EACH = 15
EVERYTHING = 1_000_000
KILLS = figure(3, 60)

Start = Callable[[], Peer]


def assert_sound(folder: Path) -> None:
    wrong = [one for one in examine(folder / "penstock.db", now=NOON) if one.grade == "fail"]
    assert wrong == []


def all_ids(store: SqlStore) -> tuple[set[str], list[str]]:
    """The ids of live messages, and of ended ones once per ending."""

    def look(session: Session) -> tuple[set[str], list[str]]:
        queue = session.queues.find("shared")
        assert queue is not None
        live = set()
        for state in (State.WAITING, State.READY, State.LEASED):
            wanted = Browse(queue_no=queue.queue_no, state=state, limit=EVERYTHING)
            live |= {message.id for message in session.messages.browse(wanted)}
        everything = HistoryFilter(from_at=0, to_at=2**60, limit=EVERYTHING)
        return live, [ending.id for ending in session.history.search(everything)]

    return store.read(look).result()


def drain(peer: Peer) -> list[str]:
    found: list[str] = []
    while some := peer.ask("complete", limit=100):
        found += some
    return found


def test_everything_is_completed_exactly_once_without_errors(start: Start, folder: Path) -> None:
    first = start().ready()
    first.ask("send", count=1)
    peers = [first, *(start().ready() for _ in range(3))]

    for peer in peers:
        peer.send("turn_over", count=EACH)
    report = [peer.answer() for peer in peers]
    rest = drain(first)

    assert [one["errors"] for one in report] == [[]] * len(peers)
    sent = [one for part in report for one in part["sent"]]
    completed = [one for part in report for one in part["completed"]] + rest
    assert len(completed) == len(set(completed)) == len(sent) + 1
    assert set(sent) < set(completed)
    assert [peer.close() for peer in peers] == [""] * len(peers)
    assert_sound(folder)


@pytest.mark.parametrize("seed", range(figure(1, 2)))
def test_a_killed_process_loses_nothing_and_does_not_stop_others(
    start: Start, open_another: Callable[[], SqlStore], folder: Path, seed: int
) -> None:
    dice = random.Random(seed)
    start().ready().ask("send", count=1)
    workers = [start().ready() for _ in range(3)]
    sent: set[str] = set()
    completed: list[str] = []

    def note(report: dict[str, list[str]]) -> None:
        sent.update(report.get("sent", ()))
        completed.extend(report.get("completed", ()))

    for worker in workers:
        worker.send("work")
    for _ in range(KILLS):
        for worker in workers:
            note(worker.answer())
        victim = dice.randrange(len(workers))
        for _ in range(dice.randrange(6)):
            note(workers[victim].answer())
        for report in workers[victim].kill():
            note(report)
        workers[victim] = start().ready()  # while the others work
        workers[victim].send("work")
    for worker in workers:
        for report in worker.kill():
            note(report)

    store = open_another()
    live, ended = all_ids(store)
    store.close()
    assert len(completed) == len(set(completed))
    assert len(ended) == len(set(ended))
    assert set(completed) <= set(ended), "a completion was lost"
    assert sent <= live | set(ended), "an acknowledged message is lost"
    assert not live & set(ended)
    assert_sound(folder)


def test_several_processes_create_a_missing_file_together(start: Start, folder: Path) -> None:
    peers = [start() for _ in range(5)]

    for peer in peers:
        peer.ready()

    assert [len(peer.ask("send")) for peer in peers] == [1] * len(peers)
    assert len(drain(peers[0])) == len(peers)
    assert [peer.close() for peer in peers] == [""] * len(peers)
    assert_sound(folder)
