"""Detects a thread that is about to wait for SQLite's write lock while holding that lock itself.

An application that shares its file with the store may write in a transaction of its own and then
call the store without `tx=`: the store would wait for a commit that cannot come, until it times
out.  SQLite does not report which connection holds its lock, but this is certain:

- Linux lists file locks by process, so another process is never mistaken for our own.
- Django knows the connections of the calling thread.
- A connection of sqlite3 with `check_same_thread` (the default) belongs to one thread.
- If the application has no other thread in this process, no other thread can commit.

In all other cases (SQLAlchemy in a program with threads, systems without /proc) the store waits, as
for any other writer.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from penstock.domain.errors import TransactionBusy
from penstock.store.queries import queries_of
from penstock.store.sqlite.file_header import identity

_LOCKS = Path("/proc/locks")
_WAL_WRITE_LOCK = 120  # bytes that SQLite locks: of the -shm file …
_RESERVED_LOCK = 0x40000001  # … and of a database that is not in WAL mode
# Names of our threads that never run application code.
_OURS = tuple(
    f"penstock-{name}"
    for name in ("writer", "reader", "turn", "wakeups", "watchdog", "mover", "duties")
)


def refuse_django_deadlock(path: Path) -> None:
    """Raises TransactionBusy if a Django transaction of this thread holds the lock.

    Cheap enough for every write: the list of locks is read only inside `atomic()`.
    """
    for connection in _django_connections():
        if _is_held_by_this_process(path) and _is_writing(connection, path):
            raise _deadlock(path, "tx=django.db.connection")


def refuse_deadlock(path: Path) -> None:
    """Raises TransactionBusy if this thread certainly holds the lock that it waits for."""
    if not _is_held_by_this_process(path):
        return
    refuse_django_deadlock(path)
    if _is_only_thread() or any(_is_writing(one, path) for one in _thread_connections()):
        raise _deadlock(path, "tx=")


def _deadlock(path: Path, how: str) -> TransactionBusy:
    return TransactionBusy(
        f"this thread has an open transaction that has written to {path}, and this call would wait"
        f" for its end: pass it as {how}, or call this after its commit"
    )


def _django_connections() -> Iterator[sqlite3.Connection]:
    """Django's connections of the calling thread that are in a transaction."""
    django, conf = sys.modules.get("django.db"), sys.modules.get("django.conf")
    # A library may have imported Django in a program that does not use it.
    if django is None or conf is None or not conf.settings.configured:
        return
    for wrapper in django.connections.all(initialized_only=True):
        connection = wrapper.connection
        if isinstance(connection, sqlite3.Connection) and connection.in_transaction:
            yield connection


def _thread_connections() -> list[sqlite3.Connection]:
    """Connections in a transaction that no other thread can use."""
    found = [one for one in gc.get_objects() if type(one) is sqlite3.Connection]
    open_ones = [one for one in found if _is_usable(one) and one.in_transaction]
    shared: list[sqlite3.Connection] = []
    other = threading.Thread(target=lambda: shared.extend(filter(_is_usable, open_ones)))
    other.start()
    other.join()
    return [one for one in open_ones if not any(one is another for another in shared)]


def _is_usable(connection: sqlite3.Connection) -> bool:
    try:
        connection.cursor().close()
    except sqlite3.Error:  # closed, or another thread's
        return False
    return True


def _is_writing(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether it can write to our file now; called while the lock is taken, so it is the holder."""
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    with suppress(sqlite3.Error, OSError):
        files = {name: file for _, name, file in cursor.execute("PRAGMA database_list")}
        if not files.get("main") or identity(files["main"]) != identity(path):
            return False
        [(patience_ms,)] = cursor.execute("PRAGMA busy_timeout").fetchall()
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            cursor.execute(queries_of("sqlite").text("callers.take_write_lock"))
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience_ms}")
        return True
    return False


def _is_held_by_this_process(path: Path) -> bool:
    """Whether a connection of this process holds the lock; False if that is unknown."""
    inodes = {}
    for name, byte in ((f"{path}-shm", _WAL_WRITE_LOCK), (str(path), _RESERVED_LOCK)):
        with suppress(OSError):
            inodes[str(os.stat(name).st_ino)] = byte
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return False
    return any(_is_lock_of_ours(line, inodes) for line in lines)


def _is_lock_of_ours(line: str, inodes: Mapping[str, int]) -> bool:
    """Parses a line such as `33: POSIX  ADVISORY  WRITE 16932 fe:00:2165389 120 120`."""
    _, *kind, process, file, first, last = line.split()
    byte = inodes.get(file.rpartition(":")[2])
    if byte is None or process != str(os.getpid()):
        return False
    is_held = "POSIX" in kind and "WRITE" in kind and "->" not in kind  # -> only waits for it
    return is_held and int(first) <= byte and (last == "EOF" or byte <= int(last))


def _is_only_thread() -> bool:
    others = [one for one in threading.enumerate() if one is not threading.current_thread()]
    return all(one.name.startswith(_OURS) for one in others)
