"""Records the processes started for a fleet in a file, for the next autoscaler after a crash.

The file is the only state: every operation reads and updates it under a lock, so that two
autoscalers on one machine agree.  If an autoscaler is killed before it has recorded a start, the
process is found in the registry of workers, by its label.
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


class StartedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One process that was started."""

    replica: str  # its label in the registry
    pid: int
    start_time: str = msgspec.field(name="birth")
    started_at: int
    by: tuple[int, str]  # the autoscaler: its pid and its start
    ending_since: int | None = None  # when it was asked to end


class LedgerState(msgspec.Struct, kw_only=True):
    started: list[StartedProcess] = []
    gone: list[str] = []  # replicas that have ended, but may still be in the registry
    crashes: int = 0  # in a row
    last_exit: str = ""  # how the last one ended
    to_start: int = msgspec.field(default=0, name="owed")  # how many are still to be started
    wait_until: int = 0  # none is started before


class Ledger:
    def __init__(self, folder: Path, fleet: str) -> None:
        self._folder = folder
        self._path = folder / f"{fleet}.json"

    @contextmanager
    def open(self) -> Iterator[LedgerState]:
        """Read the file under a lock and write changes back; raises ReplicasUnavailable."""
        with self._lock_file():
            state = self._read()
            before = msgspec.json.encode(state)
            try:
                yield state
            finally:
                del state.gone[:-_GONE_KEPT]
                if msgspec.json.encode(state) != before:
                    self.write(state)

    def write(self, state: LedgerState) -> None:
        """Write the file at once, while it is open."""
        new = self._path.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.encode(state))
            new.replace(self._path)
        except OSError as error:
            raise ReplicasUnavailable(f"{self._path} cannot be written: {error}") from error

    @contextmanager
    def _lock_file(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise ReplicasUnavailable(f"cannot write to {self._folder}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)  # releases the lock

    def _read(self) -> LedgerState:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=LedgerState)
        except FileNotFoundError:
            return LedgerState()
        except (OSError, msgspec.MsgspecError) as error:
            raise ReplicasUnavailable(f"{self._path} cannot be read: {error}") from error
