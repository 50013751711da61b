"""An archiver that is killed at any moment, repeatedly: no row is lost or duplicated."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.domain.lake import layout as lake
from penstock.domain.message.history import HistoryFilter
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.settings import Settings
from penstock.settings.values import StoreSettings
from penstock.wiring.broker import Broker, migrate, open_broker
from tests.docs.snippets import ROOT
from tests.faults.figures import figure
from tests.runtime.archiver.driver import rows_of
from tests.runtime.archiver.killed_archiver import open_small
from tests.store.driver import EVERYTHING, StoreDriver

KILLED = -signal.SIGKILL
RANDOM_KILLS = figure(8, 60)
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    is_postgres = request.param == "postgres"
    url = request.getfixturevalue("postgres_url") if is_postgres else None
    settings = Settings(data=str(tmp_path), store=StoreSettings(url=url))
    migrate(settings)
    return settings


@pytest.fixture
def broker(settings: Settings) -> Iterator[Broker]:
    with closing(open_broker(settings)) as broker:
        yield broker


@pytest.fixture
def store_driver(broker: Broker) -> StoreDriver:
    return StoreDriver(broker.store, broker.clock)  # type: ignore[arg-type]


class Victims:
    def __init__(self, settings: Settings) -> None:
        text = msgspec.json.encode(settings).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.archiver.killed_archiver", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def start(self, last_step: int | None = None) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{last_step or ''}\n")
        self._process.stdin.flush()
        return int(self._line())

    def ended(self) -> int:
        return int(self._line())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@pytest.fixture
def victims(settings: Settings) -> Iterator[Victims]:
    with closing(Victims(settings)) as victims:
        yield victims


class Traffic:
    """Something of every kind, a little at a time."""

    def __init__(self, store_driver: StoreDriver) -> None:
        self._store_driver = store_driver
        self._mail = store_driver.queue("mail", max_attempts=2, dead_letter_queue="letters")
        self._letters = store_driver.queue("letters")
        self._turns: list[tuple[int, int]] = []  # when each began and ended

    def under_way(self, at: int, instants: dict[str, int]) -> set[str]:
        """What was done in the turn that an instant fell into: it may have been committed by then
        or not."""
        turns = [(began, ended) for began, ended in self._turns if began <= at <= ended]
        return {i for i, t in instants.items() for began, ended in turns if began <= t <= ended}

    def keep_sending(self) -> None:
        began = self._store_driver.now
        self._send_and_claim()
        self._turns.append((began, self._store_driver.now))

    def leave_one(self) -> None:
        """A message that stays in its queue: every second turn leaves none for a snapshot."""
        self._store_driver.send_many(self._letters, 1, body='"b"')

    def _send_and_claim(self) -> None:
        store_driver = self._store_driver
        store_driver.send_many(self._mail, 3, body='"b"')
        for turn, held in enumerate(store_driver.claim(self._mail, 10)):
            if turn == 0:
                store_driver.act(Verb.FAIL, held, text="broken", delay_ms=0)
            else:
                store_driver.complete(held)
        for held in store_driver.claim(self._letters):
            store_driver.complete(held)
        now = store_driver.now
        store_driver.write(lambda s: s.facts.add("tick", "x", at=now, data={}))


def check(settings: Settings, store_driver: StoreDriver, traffic: Traffic) -> None:
    """The lake says what the store says, row by row."""
    folder = Path(settings.lake_folder)
    endings = store_driver.read(lambda s: s.history.search(HistoryFilter(limit=EVERYTHING)))
    rows = rows_of(folder, lake.HISTORY)
    expected = sorted((e.finished_at, e.history_no, e.id, e.queue, e.outcome) for e in endings)
    names = ("finished_at", "history_no", "id", "queue", "outcome")
    assert sorted(tuple(row[name] for name in names) for row in rows) == expected
    bodies = rows_of(folder, lake.BODIES)
    assert Counter((b["dt"], b["history_no"], b["body"]) for b in bodies) == Counter(
        (row["dt"], row["history_no"], '"b"') for row in rows
    )
    for table, counted in ((lake.ATTEMPTS, "attempt"), (lake.FACTS, "fact")):
        numbers = Counter((row["dt"], row[f"{counted}_no"]) for row in rows_of(folder, table))
        assert set(numbers.values()) == {1}
    totals = store_driver.read(lambda s: s.queues.total())
    assert len(rows_of(folder, lake.ATTEMPTS)) == totals.failed_total
    samples = Counter(row["sample_no"] for row in rows_of(folder, lake.BACKLOG))
    assert set(samples.values()) == {1}
    check_snapshots(folder, store_driver, traffic, rows)


def check_snapshots(
    folder: Path, store_driver: StoreDriver, traffic: Traffic, endings: list[dict[str, Any]]
) -> None:
    """Each is of its instant: whatever was sent by then and had not ended for good."""
    live: dict[str, int] = {}
    for queue in store_driver.queues:
        for state in (State.READY, State.WAITING, State.LEASED):
            live |= {m.id: m.sent_at for m in store_driver.browse(queue, state)}
    born = live | {row["id"]: row["sent_at"] for row in endings}
    ended: dict[str, int] = {}
    for row in endings:
        if row["id"] not in live:
            ended[row["id"]] = max(ended.get(row["id"], 0), row["finished_at"])
    taken: dict[tuple[str, int], list[str]] = {}
    for row in rows_of(folder, lake.SNAPSHOTS):
        taken.setdefault((row["snapshot_no"], row["taken_at"]), []).append(row["id"])
    assert taken
    for (_, at), ids in taken.items():
        was_there = {i for i, sent in born.items() if sent <= at < ended.get(i, at + 1)}
        unsure = traffic.under_way(at, born) | traffic.under_way(at, ended)
        assert len(set(ids)) == len(ids)
        assert was_there - unsure <= set(ids) <= was_there | unsure


def test_killed_at_every_step(
    settings: Settings, broker: Broker, store_driver: StoreDriver, victims: Victims
) -> None:
    traffic, survivor = Traffic(store_driver), open_small(broker)
    killed = 0
    stride = 1 if broker.store.backend == "sqlite" else 4  # the steps are the same
    for step in range(1, 2_000, stride):
        traffic.keep_sending()
        victims.start(step)
        code = victims.ended()
        if code == 0:
            break
        assert code == KILLED, "it did not die of itself"
        killed += 1
        if killed % 3 == 0:
            survivor.archiver.run()
    assert killed * stride > 30

    traffic.leave_one()
    survivor.archiver.run()
    survivor.snapshots.take()
    check(settings, store_driver, traffic)


def test_killed_at_random_while_messages_come_and_go(
    settings: Settings, broker: Broker, store_driver: StoreDriver, victims: Victims
) -> None:
    traffic = Traffic(store_driver)
    is_over = threading.Event()
    trouble: list[BaseException] = []

    def keep_sending() -> None:
        try:
            while not is_over.wait(0.005):
                traffic.keep_sending()
        except BaseException as error:
            trouble.append(error)

    load = threading.Thread(target=keep_sending)
    load.start()
    chance = random.Random(7)
    wait = threading.Event()
    try:
        for _ in range(RANDOM_KILLS):
            child = victims.start()
            wait.wait(chance.uniform(0.0, 0.5))
            os.kill(child, signal.SIGKILL)
            assert victims.ended() == KILLED
    finally:
        is_over.set()
        load.join()
    assert trouble == []
    traffic.keep_sending()
    store_driver.send(store_driver.queues[0])

    open_small(broker).archiver.run()
    open_small(broker).snapshots.take()
    check(settings, store_driver, traffic)
