"""Checks of a MariaDB store for `penstock doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.domain.errors import PenstockError
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.store.commit.session import SqlSession
from penstock.store.maintenance.checks import clock_offset, examine_content
from penstock.store.mariadb.connection import MariadbDatabase
from penstock.store.mariadb.store import NEEDED
from penstock.store.mariadb.url import parse


def examine(url: str, *, clock: Callable[[], int], space: bool = False) -> Iterator[Finding]:
    """`clock` reads the time of this machine."""
    try:
        session = SqlSession(MariadbDatabase(parse(url), read_only=True))
    except PenstockError as error:
        yield fail("store", str(error))
        return
    try:
        facts = session.read(lambda s: s.db.rows("session.facts"))
        yield from _server({name: str(value) for name, value in facts})
        yield clock_offset(lambda: _time(session), clock)
        yield from examine_content(session, lambda: _time(session), _transactions, space=space)
    except PenstockError as error:
        yield fail("store", str(error))
    finally:
        session.db.close()


def _server(facts: dict[str, str]) -> Iterator[Finding]:
    yield ok("mariadb", facts["version"].partition("-")[0])
    for name, wanted in NEEDED.items():
        text = f"is {facts[name]}"
        is_safe = facts[name] in wanted
        yield ok(name, text) if is_safe else fail(name, f"{text}, must be {wanted[0]}")
    if facts["log_bin"] == "1" and facts["sync_binlog"] != "1":
        yield warn(
            "sync_binlog",
            f"is {facts['sync_binlog']}: after a power failure the binary log may lack commits that"
            " are in the database, so a replica or a restored backup may lack them; set it to 1",
        )


def _transactions(session: SqlSession) -> Iterator[Finding]:
    [(rights,)] = session.read(lambda s: s.db.rows("checks.sees_all_transactions"))
    if rights:
        yield ok("transactions", "this user sees those of other users, as the archive needs")
    else:
        yield warn(
            "transactions",
            "those of other users are hidden from this one, so the archive cannot tell which rows"
            " are final; for an archive: GRANT PROCESS ON *.* TO this user",
        )


def _time(session: SqlSession) -> int:
    [(now,)] = session.read(lambda s: s.db.rows("clock.read"))
    return int(now)
