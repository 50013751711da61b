"""Which processes were started for a fleet: a file, so that whoever comes after a crash knows them.

The file is the only memory there is; every act reads it and leaves it right, under a lock, so that
two autoscalers on one machine see the same.  A process that is started and not yet written down
when its autoscaler is killed is found in the registry of workers, by its label.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from penstock.domain.errors import ReplicasUnavailable

_GONE_KEPT = 1_000


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """One process that was started."""

    replica: str  # its label in the registry
    pid: int
    birth: str
    started_at: int
    by: tuple[int, str]  # the autoscaler: its number and its birth
    ending_since: int | None = None  # it was told to end


class Book(msgspec.Struct, kw_only=True):
    started: list[Started] = []
    gone: list[str] = []  # replicas that have ended; the registry may not know it yet
    crashes: int = 0  # in a row
    last_exit: str = ""  # how the last one ended
    owed: int = 0  # have crashed, and are to be started again
    wait_until: int = 0  # before that none is started


class Ledger:
    def __init__(self, folder: Path, fleet: str) -> None:
        self._folder = folder
        self._path = folder / f"{fleet}.json"

    @contextmanager
    def open(self) -> Iterator[Book]:
        """What is written in it; what is changed is kept.  Raises ReplicasUnavailable."""
        with self._locked():
            book = self._read()
            before = msgspec.json.encode(book)
            try:
                yield book
            finally:
                del book.gone[:-_GONE_KEPT]
                if msgspec.json.encode(book) != before:
                    self.keep(book)

    def keep(self, book: Book) -> None:
        """At once, while it is open."""
        new = self._path.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.encode(book))
            new.replace(self._path)
        except OSError as error:
            raise ReplicasUnavailable(f"{self._path} cannot be written: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise ReplicasUnavailable(f"nothing can be kept in {self._folder}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)  # which lets go of it

    def _read(self) -> Book:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Book)
        except FileNotFoundError:
            return Book()
        except (OSError, msgspec.MsgspecError) as error:
            raise ReplicasUnavailable(f"{self._path} cannot be read: {error}") from error
