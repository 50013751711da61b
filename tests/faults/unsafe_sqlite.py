"""Makes SQLite silently ignore settings of the broker, as it may in production."""

from __future__ import annotations

from collections.abc import Callable

import apsw

NO_WAL = "journal_mode is not what was asked"
NO_SYNC = "synchronous is not what was asked"
OLD = "SQLite is too old"
OLD_VERSION = "3.40.1"
OLD_NUMBER = 3_040_001


def begin(what: str) -> None:
    if what == NO_WAL:
        apsw.connection_hooks.append(_deaf_to("journal_mode", "DELETE"))
    elif what == NO_SYNC:
        apsw.connection_hooks.append(_deaf_to("synchronous", "OFF"))
    elif what == OLD:
        apsw.sqlite_lib_version = lambda: OLD_VERSION
        apsw.SQLITE_VERSION_NUMBER = OLD_NUMBER
        apsw.connection_hooks.append(_answer_with_an_old_version)
    elif what:
        raise ValueError(f"unknown kind of unsafe SQLite: {what}")


def _deaf_to(pragma: str, value: str) -> Callable[[apsw.Connection], None]:
    """Connections on which the pragma keeps this value; setting it does not fail."""

    def authorize(code: int, name: str | None, argument: str | None, *_: object) -> int:
        is_setting = code == apsw.SQLITE_PRAGMA and name == pragma and argument is not None
        return apsw.SQLITE_IGNORE if is_setting else apsw.SQLITE_OK

    def hook(db: apsw.Connection) -> None:
        db.execute(f"PRAGMA {pragma} = {value}")
        db.authorizer = authorize

    return hook


def _answer_with_an_old_version(db: apsw.Connection) -> None:
    db.create_scalar_function("sqlite_version", lambda *_: OLD_VERSION, 0)
