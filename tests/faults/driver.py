"""The store itself on the faulty disk, in this process and in one thread: a power cut is a call.

What a server under load meets once in forty runs, a seeded walk over the store's calls meets in a
second, and every time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import apsw

from penstock.domain.errors import PenstockError
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Acted, Browse, Claim, Sent, Session
from penstock.store.sqlite import checksums
from penstock.store.sqlite.log_mover import LogMover
from penstock.store.store import SqlStore, open_sqlite
from tests.clocks import NOON
from tests.factories import a_new_message, an_act, some_settings
from tests.faults.directory import Directory, Names
from tests.faults.disk import Loss
from tests.faults.disk_faults import DiskFaults
from tests.faults.faulty_vfs import Connection, FaultyVFS
from tests.store.open_files import connections_to

QUEUE = "faults-driver"


class FaultyStoreDriver:
    """A store, what it has acknowledged, and methods that harm it."""

    def __init__(self, folder: Path, vfs: FaultyVFS, seed: int) -> None:
        self.path = folder / "penstock.db"
        self.dice = random.Random(seed)
        self.loss, self.names = Loss.EVERYTHING, Names.EXT4
        self.done: set[str] = set()  # the completion was acknowledged
        self.held: list[Message] = []
        self._vfs = vfs
        self._store: SqlStore | None = None
        self._new_machine()
        self._open()
        self.queue = self.store.write(_make_queue).result()
        self.kept = self.store.read(self._live_ids).result()  # acknowledged, never completed

    @property
    def store(self) -> SqlStore:
        assert self._store is not None
        return self._store

    @property
    def trouble(self) -> DiskFaults:
        return self._vfs.trouble

    def send(self, count: int, size: int) -> bool:
        """Whether it was acknowledged."""
        body = '"' + "x" * size + '"'
        new = [a_new_message(self.queue, body=body) for _ in range(count)]
        with suppress(PenstockError):
            answers = self.store.send(new).result()
            assert all(isinstance(answer, Sent) for answer in answers), answers
            self.kept.update(one.message.id for one in new)
            return True
        return False

    def claim(self, count: int) -> None:
        wanted = Claim(queue_no=self.queue.queue_no, now=NOON, limit=count, lease_ms=10**9)
        with suppress(PenstockError):
            self.held += [message for message, _ in self.store.claim(wanted).result().messages]

    def complete(self) -> None:
        held, self.held = self.held, []
        acts = [an_act(Verb.COMPLETE, message) for message in held]
        self.kept -= {message.id for message in held}  # unknown unless acknowledged
        with suppress(PenstockError):
            answers = self.store.act(acts).result()
            for message, answer in zip(held, answers, strict=True):
                if isinstance(answer, Acted):
                    self.done.add(message.id)

    def read(self) -> None:
        with suppress(PenstockError):
            self.store.read(lambda session: session.queues.find(QUEUE)).result()

    def restart(self) -> None:
        """Like an operator: close everything; the disk may fail at that, too."""
        self.store.close()
        self._open()

    def kill(self) -> None:
        """The process is gone; what it wrote is in the page cache, synced or not."""
        self.crash()
        self._open()

    def crash(self) -> None:
        self.trouble.is_off = True
        self._forget()
        self.trouble.is_off = False

    def cut_power(self) -> None:
        """Cut it now, unless it failed by itself before."""
        if not self.trouble.is_off:
            self._lose_power()
        self._new_machine()
        self._open()

    def close(self) -> None:
        self.trouble.is_off = True
        self._forget()
        self._vfs.directory.close()

    def assert_kept(self) -> None:
        db = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            found = db.execute("PRAGMA integrity_check").get
            assert found == "ok", found
        finally:
            db.close()
        there = self.store.read(self._live_ids).result()
        lost, back = self.kept - there, self.done & there
        assert not lost, f"{len(lost)} of {len(self.kept)} acknowledged messages are lost"
        assert not back, f"{len(back)} of {len(self.done)} completed messages are back"

    def _live_ids(self, session: Session) -> set[str]:
        states = (State.READY, State.LEASED)
        wanted = [Browse(queue_no=self.queue.queue_no, state=s, limit=10**6) for s in states]
        return {message.id for each in wanted for message in session.messages.browse(each)}

    def _open(self) -> None:
        """Like a supervisor: retry until it opens; in the end the disk works."""
        self._forget()
        for _ in range(20):
            with suppress(PenstockError):
                self._store = open_sqlite(self.path)
                return
            if self.trouble.is_off:
                self._new_machine()
        self.trouble.syncs_fail = 0.0
        self._store = open_sqlite(self.path)

    def _forget(self) -> None:
        """The end of a process closes every connection."""
        if self._store is not None:
            self._store.close()
        self._store = None
        self.held = []
        for db in self.connections():
            db.close(True)

    def connections(self) -> list[apsw.Connection]:
        """All connections, also those without a reference elsewhere."""
        return connections_to(self.path)

    def _new_machine(self) -> None:
        self._forget()
        self._vfs.directory.close()
        self._vfs.directory = Directory(self.path.parent)
        self._vfs.trouble = DiskFaults(self._lose_power, self.dice.randrange(2**32))

    def _lose_power(self) -> None:
        with self._vfs.lock:  # a thread may be moving the log
            self.trouble.is_off = True
            self._vfs.directory.lose_power(self.loss, self.names, self.dice)


@contextmanager
def rigged(
    folder: Path, seed: int, *, checkpoint_pages: int = 10_000, has_mover: bool = False
) -> Iterator[FaultyStoreDriver]:
    """`has_mover`: a thread moves the log, so that runs are not reproducible."""
    checksums.turn_on()  # first, as it builds on the VFS that is the default then
    vfs = FaultyVFS(Directory(folder), DiskFaults(lambda: None, seed))
    with (
        mock.patch.object(apsw, "Connection", Connection),
        mock.patch("penstock.store.sqlite.connection.CHECKPOINT_PAGES", checkpoint_pages),
        mock.patch.object(LogMover, "is_possible", has_mover),
    ):
        driver = FaultyStoreDriver(folder, vfs, seed)
        try:
            yield driver
        finally:
            try:
                driver.close()
            finally:
                vfs.unregister()


def _make_queue(session: Session) -> Queue:
    return session.queues.find(QUEUE) or session.queues.add(QUEUE, some_settings(), now=NOON)
