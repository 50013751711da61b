"""Checks of a PostgreSQL store for `penstock doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.domain.errors import PenstockError
from penstock.domain.limits import SECOND
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.store.commit.session import SqlSession
from penstock.store.maintenance.checks import clock_offset, examine_content
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.store import OLDEST_SERVER
from penstock.store.postgres.url import ServerRole, parse

# Without these, an acknowledged message may be lost, or a torn page go unnoticed.
_PROMISES = {"fsync": "on", "full_page_writes": "on", "data_sync_retry": "off"}


_MAX_TRANSACTIONS = 20


def examine(url: str, *, clock: Callable[[], int]) -> Iterator[Finding]:
    """`clock` reads the time of this machine."""
    try:
        session = SqlSession(PostgresDatabase(parse(url), read_only=True, role=ServerRole.ANY))
    except PenstockError as error:
        yield fail("store", str(error))
        return
    try:
        yield from _server(dict(session.read(lambda s: s.db.rows("checks.promises"))))
        yield _role(session)
        yield clock_offset(lambda: _time(session), clock)
        yield from examine_content(session, lambda: _time(session), _transactions)
    except PenstockError as error:
        yield fail("store", str(error))
    finally:
        session.db.close()


def _server(facts: dict[str, str]) -> Iterator[Finding]:
    number = int(facts["server_version_num"])
    version = f"{number // 10_000}.{number % 10_000}"
    if number < OLDEST_SERVER:
        yield fail("postgresql", f"{version} is too old; {OLDEST_SERVER // 10_000} is needed")
    else:
        yield ok("postgresql", version)
    for name, wanted in _PROMISES.items():
        found = facts.get(name, "unknown")
        text = f"is {found}"
        yield ok(name, text) if found == wanted else fail(name, f"{text}, must be {wanted}")
    # Each of our transactions sets this; the server's default matters only to other clients.
    default = facts.get("synchronous_commit", "unknown")
    yield ok("synchronous_commit", f"is {default} by default; each transaction sets its own")


def _role(session: SqlSession) -> Finding:
    [(is_standby,)] = session.read(lambda s: s.db.rows("checks.is_standby"))
    if is_standby:
        return warn("role", "a standby: nodes use the primary, and wait until there is one")
    return ok("role", "the primary")


def _transactions(session: SqlSession) -> Iterator[Finding]:
    """Old transactions keep vacuum from removing deleted rows, which claims then have to skip."""
    now = _time(session)
    found = session.read(lambda s: s.overview.transactions(limit=_MAX_TRANSACTIONS))
    old = [one for one in found if one.is_old(now=now)]
    for one in old:
        age = "" if one.since is None else f"{(now - one.since) // SECOND} s and "
        yield warn(
            "transactions",
            f"{one.label} has been open for {age}{one.transactions} transactions of the server:"
            " vacuum cannot remove rows deleted since, and claims get slower; end it"
            + ("" if one.pid is None else f", if need be with pg_terminate_backend({one.pid})"),
        )
    [(sees_all,)] = session.read(lambda s: s.db.rows("checks.sees_all_sessions"))
    if not sees_all:
        yield warn(
            "transactions",
            "those of other PostgreSQL users are hidden from this one; grant it pg_read_all_stats",
        )
    elif not old:
        yield ok("transactions", "none is old enough to hold back vacuum")


def _time(session: SqlSession) -> int:
    [(now,)] = session.read(lambda s: s.db.rows("clock.read"))
    return int(now)
