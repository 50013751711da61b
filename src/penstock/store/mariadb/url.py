"""The store URL.

    mysql://user:password@host:3306/database?timeout_ms=5000&ssl_ca=/path/ca.pem

`timeout_ms=…`          how long a statement may take before the store counts as unavailable
`unix_socket=…`         connect through this socket
`ssl_ca`, `ssl_cert`, `ssl_key`, `ssl_verify_identity=on`    as of PyMySQL

Without such options a connection to another host uses TLS if the server offers it, unverified.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from penstock.domain.errors import InvalidRequest

DEFAULT_TIMEOUT_MS = 5_000
DEFAULT_PORT = 3306
_FILES = ("ssl_ca", "ssl_cert", "ssl_key")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_OPTIONS = (*_FILES, "ssl_verify_identity", "unix_socket", "timeout_ms")


class MariadbUrl(msgspec.Struct, frozen=True):
    """A parsed URL, shared by all connections of a store."""

    options: dict[str, Any]  # of PyMySQL's connect
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    @property
    def lock_timeout_s(self) -> int:
        """InnoDB counts in whole seconds."""
        return max(self.timeout_ms * 3 // 5_000, 1)

    @property
    def idle_timeout_s(self) -> int:
        """How long a transaction may be idle: shorter than others wait for its locks.

        So a stopped node delays other transactions but does not make them fail.
        """
        return max(self.timeout_ms * 2 // 5_000, 1)


def parse(url: str) -> MariadbUrl:
    """Raises InvalidRequest."""
    parts = urlsplit(url)
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database:
        raise InvalidRequest("a MariaDB URL names a database: mysql://user@host/database")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(given.keys() - set(_OPTIONS))
    if unknown:
        raise InvalidRequest(f"unknown option {unknown[0]!r}; a URL takes {', '.join(_OPTIONS)}")
    timeout = given.get("timeout_ms", str(DEFAULT_TIMEOUT_MS))
    if not timeout.isdecimal() or not 2_000 <= int(timeout) <= 600_000:
        raise InvalidRequest(f"timeout_ms must be from 2000 to 600000, not {timeout!r}")
    options: dict[str, Any] = {name: given[name] for name in _FILES if name in given}
    verify = given.get("ssl_verify_identity", "off")
    if verify not in ("on", "off"):
        raise InvalidRequest(f"ssl_verify_identity must be on or off, not {verify!r}")
    if verify == "on":
        options |= {"ssl_verify_cert": True, "ssl_verify_identity": True}
    if "unix_socket" in given:
        options["unix_socket"] = given["unix_socket"]
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError as error:
        raise InvalidRequest(f"not a MariaDB URL: {error}") from None
    options |= {
        "host": parts.hostname or "localhost",
        "port": port,
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password or ""),
        "database": database,
    }
    is_local = options["host"] in _LOCAL or "unix_socket" in options
    if is_local and not any(name.startswith("ssl") for name in options):
        options["ssl_disabled"] = True  # loading the system's certificates takes 20 ms
    return MariadbUrl(options, int(timeout))
