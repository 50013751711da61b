"""Checks of a PostgreSQL store for `penstock doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.domain.errors import PenstockError
from penstock.domain.limits import SECOND
from penstock.domain.queue.problem import OldTransaction
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.domain.store.store_time import instant_text
from penstock.domain.store.upkeep import TableState
from penstock.store.commit.session import SqlSession
from penstock.store.maintenance.checks import clock_offset, examine_content
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.store import OLDEST_SERVER
from penstock.store.postgres.url import ServerRole, parse

# Without these, an acknowledged message may be lost, or a torn page go unnoticed.
_PROMISES = {"fsync": "on", "full_page_writes": "on", "data_sync_retry": "off"}


_MAX_TRANSACTIONS = 20
_MAX_TABLES = 20


def examine(url: str, *, clock: Callable[[], int], space: bool = False) -> Iterator[Finding]:
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
        more = (_transactions, _upkeep)
        yield from examine_content(session, lambda: _time(session), *more, space=space)
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
            f"{one.label} has been open for {age}{one.transactions} transactions of the server"
            f"{_activity(one, now)}: vacuum cannot remove rows deleted since; end it"
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


def _activity(one: OldTransaction, now: int) -> str:
    if one.state is None or one.query_since is None:
        return ""
    what = "its statement began" if one.state == "active" else f"it is {one.state}, the last began"
    return f" ({what} {max(now - one.query_since, 0) // SECOND} s ago)"


def _upkeep(session: SqlSession) -> Iterator[Finding]:
    """Dead rows of tables, and the queue of notifications."""
    found = session.read(lambda s: s.overview.upkeep(limit=_MAX_TABLES))
    for table in found.bloated:
        yield warn("dead rows", f"{_dead_rows(table)}; is a transaction old, or autovacuum off?")
    if not found.bloated and found.tables:
        yield ok("dead rows", _dead_rows(found.tables[0]))
    full = found.notifications or 0
    text = f"the queue of notifications is {full:.0%} full"
    if found.is_notification_queue_full:
        advice = "a session listens and does not read: end those that are idle in a transaction"
        yield warn("notifications", f"{text}; {advice}")
    else:
        yield ok("notifications", text)


def _dead_rows(table: TableState) -> str:
    when = "never" if table.vacuumed_at is None else instant_text(table.vacuumed_at)
    counts = f"{table.dead_rows} dead and {table.rows} live rows"
    return f"table {table.name} has {counts}; last vacuum: {when}"


def _time(session: SqlSession) -> int:
    [(now,)] = session.read(lambda s: s.db.rows("clock.read"))
    return int(now)
