"""URLs of stores: which ones are valid, and how to show one without its password."""

from __future__ import annotations

import re

from penstock.domain.errors import InvalidRequest

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
MARIADB = ("mysql://", "mariadb://")
STORES = (SQLITE, *POSTGRES, *MARIADB)

# Greedy up to the last @: a password may contain an unquoted one.
_IN_URL = re.compile(r"(//[^:/@\s]*:)[^\s]*(@)")
_NAMED = re.compile(r"(?i)(password=)[^&\s]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/*")


def check_store_url(url: str) -> str:
    """Return the URL; raise InvalidRequest if it does not name a store."""
    if not url.startswith(STORES):
        raise InvalidRequest(
            f"store.url is {quoted_url(url)}; use sqlite:///path, postgresql://… or mysql://…"
        )
    path = url.removeprefix(SQLITE).partition("?")[0]
    if path == ":memory:":
        raise InvalidRequest(
            f"{url!r} does not name a file, and a store must outlive its process; "
            "for tests use penstock.testing"
        )
    if not path:
        raise InvalidRequest(f"{url!r} lacks the path of a file, as in sqlite:///jobs.db")
    return url


def backend_of(url: str) -> str:
    """The name of the store behind a URL, as the API reports it."""
    if url.startswith(MARIADB):
        return "mariadb"
    return "postgres" if url.startswith(POSTGRES) else "sqlite"


def without_passwords(text: str) -> str:
    """Mask the password of a URL in a setting's text."""
    return _NAMED.sub(r"\1…", _IN_URL.sub(r"\1…\2", text))


def quoted_url(url: object) -> str:
    """Quote an invalid URL in an error message; everything before its last @ may be a password."""
    if not isinstance(url, str):
        return repr(url)
    before, at, after = url.rpartition("@")
    if at:
        scheme = _SCHEME.match(before)
        url = f"{scheme[0] if scheme else ''}…@{after}"
    return repr(_NAMED.sub(r"\1…", url))
