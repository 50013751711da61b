"""The store URL: libpq's own options, and two of ours.

    postgresql://user@host/database?prepare=off&timeout_ms=5000&sslmode=require

`prepare=off`      no prepared statements, for proxies that pool connections per transaction
`timeout_ms=…`     how long a statement may take before the store counts as unavailable

Both ends of a connection detect when the other host is gone: libpq's `keepalives_idle`,
`keepalives_interval`, `keepalives_count` and `tcp_user_timeout` are set on the server, too.
"""

from __future__ import annotations

from enum import Enum

import msgspec
import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from penstock.domain.errors import InvalidRequest, StoreRefused, StoreUnavailable
from penstock.store.postgres.sessions import LostSessions

OLDEST_LIBPQ = 140_000  # the first with pipeline mode
DEFAULT_TIMEOUT_MS = 5_000

# These detect a dead server within seconds, whatever the kernel's defaults are.
_CAREFUL = {
    "connect_timeout": "3",
    "tcp_user_timeout": "5000",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "1",
    "keepalives_count": "5",
    "client_encoding": "utf8",
    "application_name": "penstock",
}

# The server's names for these.
_AT_SERVER = {
    "keepalives_idle": "tcp_keepalives_idle",
    "keepalives_interval": "tcp_keepalives_interval",
    "keepalives_count": "tcp_keepalives_count",
    "tcp_user_timeout": "tcp_user_timeout",
}
# Ends a statement that waits for a lock when its client has closed the connection.
_CHECK_CLIENT = {"client_connection_check_interval": "2s"}


class ServerRole(Enum):
    """Which of several hosts to use: after a failover the first one may be a standby."""

    WRITABLE = "read-write"
    PRIMARY = "primary"  # also to read: a standby lags behind, and its clock is another
    ANY = "any"


class PostgresUrl(msgspec.Struct):
    """A parsed URL, shared by all connections of a store."""

    conninfo: str
    prepares: bool = True  # switched off for good if a proxy loses prepared statements
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    lost: LostSessions = msgspec.field(default_factory=LostSessions)

    @property
    def lock_timeout_ms(self) -> int:
        return self.timeout_ms * 3 // 5

    @property
    def idle_timeout_ms(self) -> int:
        """How long a transaction may be idle: shorter than others wait for its locks.

        So a stopped node delays other transactions but does not make them fail.
        """
        return self.timeout_ms * 2 // 5

    @property
    def watch_ms(self) -> int:
        """Interval of checks for stalled sessions: five take about as long as `idle_timeout_ms`."""
        return self.timeout_ms // 10


def parse(url: str) -> PostgresUrl:
    """Extract our own options; the rest is libpq's.  Raises InvalidRequest."""
    base, _, query = url.partition("?")
    pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
    ours = {name: value for name, value in pairs if name in ("prepare", "timeout_ms")}
    rest = "&".join(f"{name}={value}" for name, value in pairs if name not in ours)
    prepare, timeout = ours.get("prepare", "on"), ours.get("timeout_ms", str(DEFAULT_TIMEOUT_MS))
    if prepare not in ("on", "off"):
        raise InvalidRequest(f"prepare must be on or off, not {prepare!r}")
    if not timeout.isdecimal() or not 100 <= int(timeout) <= 600_000:
        raise InvalidRequest(f"timeout_ms must be from 100 to 600000, not {timeout!r}")
    conninfo = f"{base}?{rest}" if rest else base
    return PostgresUrl(conninfo, prepare == "on", int(timeout))


def server_settings(url: PostgresUrl) -> dict[str, str]:
    """Settings for the server's end of a connection, to detect that our host is gone."""
    wanted = _CAREFUL | {k: str(v) for k, v in conninfo_to_dict(url.conninfo).items()}
    if wanted["keepalives"] == "0":
        return _CHECK_CLIENT
    return {there: wanted[here] for here, there in _AT_SERVER.items()} | _CHECK_CLIENT


def connect(url: PostgresUrl, *, role: ServerRole = ServerRole.WRITABLE) -> psycopg.Connection:
    """Connect, with every wait bounded."""
    if pq.version() < OLDEST_LIBPQ:
        raise StoreRefused(f"libpq {pq.version()} has no pipeline mode; 14 or later is needed")
    wanted = _CAREFUL | {"target_session_attrs": role.value}
    try:
        given = conninfo_to_dict(url.conninfo)
        missing = {name: value for name, value in wanted.items() if name not in given}
        return psycopg.connect(make_conninfo(url.conninfo, **missing), autocommit=True)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot reach PostgreSQL: {error}".strip()) from error
    except psycopg.ProgrammingError as error:
        raise InvalidRequest(f"not a PostgreSQL URL: {error}".strip()) from error
