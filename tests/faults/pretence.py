"""Makes SQLite quietly refuse what the broker asks of it, as it does in the field (row 17)."""

from __future__ import annotations

import apsw

NO_WAL = "journal_mode is not what was asked"
NO_SYNC = "synchronous is not what was asked"
OLD = "SQLite is too old"
OLD_VERSION = "3.40.1"
OLD_NUMBER = 3_040_001


def begin(what: str) -> None:
    if what == NO_WAL:
        # This VFS has no shared memory: PRAGMA journal_mode=WAL answers "delete" and goes on.
        _without_shared_memory()
    elif what == NO_SYNC:
        apsw.connection_hooks.append(_ignore_synchronous)
    elif what == OLD:
        apsw.sqlite_lib_version = lambda: OLD_VERSION
        apsw.SQLITE_VERSION_NUMBER = OLD_NUMBER
        apsw.connection_hooks.append(_answer_with_an_old_version)
    elif what:
        raise ValueError(f"no such pretence: {what}")


_kept: list[apsw.VFS] = []


def _without_shared_memory() -> None:
    _kept.append(apsw.VFS("no-shared-memory", "unix-dotfile", makedefault=True))


def _ignore_synchronous(db: apsw.Connection) -> None:
    db.execute("PRAGMA synchronous = OFF")

    def authorize(code: int, first: str | None, second: str | None, *_: object) -> int:
        is_setting = code == apsw.SQLITE_PRAGMA and first == "synchronous" and second is not None
        return apsw.SQLITE_IGNORE if is_setting else apsw.SQLITE_OK

    db.authorizer = authorize


def _answer_with_an_old_version(db: apsw.Connection) -> None:
    db.create_scalar_function("sqlite_version", lambda *_: OLD_VERSION, 0)
