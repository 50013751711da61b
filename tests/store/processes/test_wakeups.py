"""Wake-ups between processes, and commits of applications."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Queue
from penstock.ports.ticket import Wakeups
from penstock.store.commit.requests import RequestKind, StoreRequest
from penstock.store.commit.session import SqlSession
from penstock.store.sqlite import wakeups as sqlite_wakeups
from penstock.store.sqlite.connection import SqliteDatabase
from penstock.store.sqlite.shared_connection import LogMoveTimer, PlainSqliteDatabase
from penstock.store.sqlite.wakeups import SqliteWakeups
from penstock.store.store import SqlStore
from tests.clocks import ManualClock
from tests.factories import a_new_message
from tests.store.driver import StoreDriver
from tests.store.processes.peer import Peer
from tests.support.waiting import eventually

WAIT_S = 30

Start = Callable[[], Peer]
Another = Callable[..., SqlStore]


@pytest.fixture(autouse=True)
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """For this test alone; pytest's own folders have names that are too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="ps-") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        yield Path(name)


class Ear:
    """Records the wake-ups of a store."""

    def __init__(self, store: Wakeups) -> None:
        self.received: dict[int, int] = {}
        self._changed = threading.Condition()
        store.listen(self._hear)

    def _hear(self, woken: Mapping[int, int]) -> None:
        with self._changed:
            self.received.update(woken)
            self._changed.notify_all()

    def wait_for(self, queue_no: int, *, within_s: float = WAIT_S) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: queue_no in self.received, within_s)


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_wakeups, "CHECK_MS", 1_000_000)


def test_a_claim_that_waits_in_one_process_gets_what_another_sends(start: Start) -> None:
    waiting, sending = start().ready(), start().ready()
    sending.ask("make_queue")
    waiting.send("hear")
    assert waiting.answer() == "waiting"

    sent = sending.ask("send")

    assert waiting.answer() == sent


@pytest.mark.usefixtures("no_looks")
def test_endings_with_a_result_are_heard_in_other_processes(open_another: Another) -> None:
    store, driver = open_another(), StoreDriver(open_another(), ManualClock())
    heard: list[str] = []
    store.listen_for_endings(heard.extend)
    mail = driver.queue()

    def is_heard() -> bool:  # an introduction takes a moment to arrive
        driver.send(mail)
        driver.act(Verb.COMPLETE, *driver.claim(mail), result="1")
        return bool(heard)

    eventually(is_heard)
    assert heard[0] in driver.sent_ids


@pytest.mark.usefixtures("no_looks")
@pytest.mark.parametrize("listens_first", [True, False])
def test_wake_ups_do_not_depend_on_the_order_of_opening(
    open_another: Another, listens_first: bool
) -> None:
    if listens_first:
        ear = Ear(open_another())
        driver = StoreDriver(open_another(), ManualClock())
    else:
        driver = StoreDriver(open_another(), ManualClock())
        ear = Ear(open_another())
    mail = driver.queue()

    assert _is_heard(driver, mail, ear)


@pytest.mark.usefixtures("no_looks")
def test_the_socket_of_a_killed_process_is_removed_by_the_next_announcement(
    start: Start, open_another: Another, runtime_folder: Path
) -> None:
    driver = StoreDriver(open_another(), ManualClock())
    mail = driver.queue("shared")
    peer = start().ready()
    peer.send("hear")
    assert peer.answer() == "waiting"
    sockets = list(runtime_folder.glob("*/*.listening"))
    peer.kill()
    assert len(sockets) == 1

    driver.send(mail)

    ear = Ear(open_another())  # introduces itself to the others, after that announcement
    assert _is_heard(driver, mail, ear)
    assert not sockets[0].exists()


def test_a_commit_of_an_application_is_found_by_polling(
    open_another: Another, folder: Path, has_checksums: bool
) -> None:
    store = open_another()
    driver, ear = StoreDriver(store, ManualClock()), Ear(store)
    mail, other = driver.queue("mail"), driver.queue("other")
    driver.send(other)
    ear.received.clear()
    path = folder / "penstock.db"
    stranger = SqlSession(
        SqliteDatabase(path) if has_checksums else PlainSqliteDatabase(path, LogMoveTimer())
    )

    request = StoreRequest(RequestKind.SEND, [a_new_message(mail, now=driver.now)])
    stranger.run([request], durable=True)

    assert ear.wait_for(mail.queue_no)
    stranger.db.close()


def test_a_closed_store_leaves_no_sockets_behind(
    open_another: Another, runtime_folder: Path
) -> None:
    stores = [open_another(), open_another()]
    assert len(list(runtime_folder.glob("*/*"))) == 2

    for store in stores:
        store.close()

    assert list(runtime_folder.iterdir()) == []


@pytest.mark.usefixtures("no_looks")
def test_a_folder_that_others_may_write_to_is_not_used(
    open_another: Another, runtime_folder: Path, folder: Path
) -> None:
    first = open_another()
    [place] = runtime_folder.iterdir()
    first.close()
    place.mkdir(mode=0o777)
    place.chmod(0o777)

    driver = StoreDriver(open_another(), ManualClock())
    driver.send(driver.queue())

    assert list(place.iterdir()) == []
    place.rmdir()


def test_without_listeners_in_other_processes_a_commit_is_not_announced(
    open_another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_another()
    driver = StoreDriver(store, ManualClock())
    Ear(store)
    open_another()  # open, but it does not listen
    tellings: list[object] = []
    monkeypatch.setattr(
        SqliteWakeups, "_send_announcements", lambda wakeups: tellings.append(wakeups._unannounced)
    )
    mail = driver.queue()

    driver.send(mail)

    driver.store.close()  # it would announce everything before it closes
    assert all(untold == {} for untold in tellings)


def _is_heard(driver: StoreDriver, mail: Queue, ear: Ear) -> bool:
    """By the second or third announcement: an introduction takes a moment to arrive."""
    for _ in range(WAIT_S * 10):
        driver.send(mail)
        if ear.wait_for(mail.queue_no, within_s=0.1):
            return True
    return False
