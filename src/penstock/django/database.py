"""The store in the project's own database: its URL, from DATABASES."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured

_POSTGRES = "postgresql"
_SQLITE = "sqlite3"


def store_url(alias: str, database: Mapping[str, Any]) -> str:
    """Raises ImproperlyConfigured if Penstock's tables cannot be in this database."""
    vendor = str(database["ENGINE"]).rpartition(".")[2]
    name = str(database["NAME"])
    if vendor == _SQLITE:
        if "memory" in name:
            raise ImproperlyConfigured(
                f"Penstock's worker cannot see the database {alias!r}, which is in memory: give it "
                "a file (in tests TEST = {'NAME': …}), or use the immediate backend"
            )
        return f"sqlite:///{Path(name).absolute()}?checksums=off"
    if vendor == _POSTGRES:
        return _postgres_url(name, database)
    raise ImproperlyConfigured(
        f"Penstock's tables cannot be in the database {alias!r} ({vendor}): name another store "
        "with OPTIONS = {'url': …}"
    )


def is_sqlite(database: Mapping[str, Any]) -> bool:
    return str(database["ENGINE"]).endswith(_SQLITE)


def _postgres_url(name: str, database: Mapping[str, Any]) -> str:
    user, password = (quote(str(database.get(key) or ""), safe="") for key in ("USER", "PASSWORD"))
    who = f"{user}:{password}@" if password else f"{user}@" if user else ""
    # What libpq understands; the rest is for Django or for psycopg's connections.
    options = {key: text for key, text in database.get("OPTIONS", {}).items() if "ssl" in key}
    options |= {key.lower(): str(database[key]) for key in ("HOST", "PORT") if database.get(key)}
    return f"postgresql://{who}/{quote(name)}" + (f"?{urlencode(options)}" if options else "")
