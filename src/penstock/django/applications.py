"""One Penstock application for each entry of TASKS, for all threads of the process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, close_old_connections, connections

from penstock import Current, Penstock
from penstock.django.database import is_sqlite, store_url

_OPTIONS = {"url", "database", "key", "settings", "attempts"}


class DjangoApplication:
    """OPTIONS of TASKS: `url`, or `database`, the alias of the database that has the store."""

    def __init__(self, alias: str, options: Mapping[str, Any]) -> None:
        if unknown := options.keys() - _OPTIONS:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: there is no option {', '.join(sorted(unknown))}; "
                f"allowed: {', '.join(sorted(_OPTIONS))}"
            )
        self.attempts: int | None = options.get("attempts")
        self._url: str | None = options.get("url")
        self.database: str | None = options.get("database")
        if self._url is None and self.database is None:
            self.database = DEFAULT_DB_ALIAS
        self._penstock = Penstock(
            self._wanted_url(),
            name=f"django tasks {alias}",
            key=options.get("key"),
            settings=options.get("settings"),
        )
        self._penstock.around(_with_fresh_connections)
        self._lock = Lock()

    @property
    def penstock(self) -> Penstock:
        """On the store in use now: Django's tests replace the database of an alias."""
        wanted = self._wanted_url()
        with self._lock:
            if self._penstock.url != wanted:
                self._penstock.use(wanted)
        return self._penstock

    @property
    def transaction(self) -> object:
        """Django's connection, if it has the store and is in a transaction; otherwise None."""
        if self.database is None:
            return None
        connection = connections[self.database]
        if connection.connection is None:  # get_autocommit() would connect, only to find out
            autocommits = connection.settings_dict["AUTOCOMMIT"]
        else:
            autocommits = connection.get_autocommit()
        return connection if connection.in_atomic_block or not autocommits else None

    @property
    def is_on_sqlite(self) -> bool:
        return self.database is not None and is_sqlite(connections.settings[self.database])

    def _wanted_url(self) -> str:
        if self._url is not None:
            return self._url
        assert self.database is not None
        return store_url(self.database, connections[self.database].settings_dict)


_applications: dict[str, DjangoApplication] = {}
_lock = Lock()


def application_of(alias: str, options: Mapping[str, Any]) -> DjangoApplication:
    """Backends exist once per thread, their application once per process."""
    key = f"{alias} {sorted(options.items())}"
    with _lock:
        if key not in _applications:
            _applications[key] = DjangoApplication(alias, options)
        return _applications[key]


def applications_in(database: str) -> list[DjangoApplication]:
    return [one for one in list(_applications.values()) if one.database == database]


def _with_fresh_connections(_: Current) -> Iterator[None]:
    close_old_connections()  # as Django does before and after each request
    try:
        yield
    finally:
        close_old_connections()
