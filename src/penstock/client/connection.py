"""The part of an application that opens and closes its store, or its connection to a server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Self

from penstock.client.backend import Backend
from penstock.client.local.backend import LocalBackend
from penstock.client.local.lazy_backend import LazyBackend
from penstock.client.remote.backend import RemoteBackend
from penstock.client.urls import SERVER, check_url
from penstock.domain.errors import InvalidRequest
from penstock.ports.clock import Clock
from penstock.settings import Settings, check_given, load
from penstock.settings.store_url import SQLITE
from penstock.wiring.broker import migrate, own_clock


class ConnectionMixin:
    """Nothing is opened before it is needed."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        clock: Clock | None,
        settings: Mapping[str, object],
    ) -> None:
        super().__init__()
        self.url = check_url(url)
        self._key = key
        self._given = check_given(settings)
        self._clock = clock
        self._lazy_backend = LazyBackend(self._open)

    def open(self) -> Self:
        """Open the store or the connection to the server now instead of at the first use."""
        self._lazy_backend.get()
        return self

    def close(self) -> None:
        """Close the store or the connection; the next use opens it again."""
        self._lazy_backend.close()

    async def open_async(self) -> Self:
        """`open()` without blocking the event loop."""
        await self._lazy_backend.get_async()
        return self

    async def close_async(self) -> None:
        """`close()` without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.open_async()

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def substitute(self, backend: Backend) -> AbstractContextManager[None]:
        """For tests: use another backend inside this context."""
        return self._lazy_backend.substitute(backend)

    def use(self, url: str, *, key: str | None = None) -> None:
        """Switch to another store or server; closes the current one."""
        self.url = check_url(url)
        self._key = key or self._key
        self.close()

    def migrate(self) -> list[str]:
        """Migrate the schema of a local store; returns the names of the applied migrations."""
        if self.url.startswith(SERVER):
            raise InvalidRequest(
                "the store belongs to a server: run penstock migrate --store URL beside it"
            )
        return [done.name for done in migrate(self.settings(self.url))]

    def settings(self, url: str) -> Settings:
        """The settings for an in-process store at this URL; see docs/jobs.md."""
        given = {"queues.auto_create": True, **self._given, "store.url": url}
        # Variables with our prefix that are not settings may belong to commands.
        return load(program=given, other_env=os.environ).settings

    @property
    def backend(self) -> Backend:
        """The opened store or server, for other parts of Penstock."""
        return self._lazy_backend.get()

    def backend_for(self, tx: object) -> Backend:
        """Raises InvalidRequest if opening it would wait for `tx`."""
        self._refuse_to_open(tx)
        return self._lazy_backend.get()

    async def backend_for_async(self, tx: object) -> Backend:
        self._refuse_to_open(tx)
        return await self._lazy_backend.get_async()

    @property
    def clock(self) -> Clock:
        """The clock of the store; for a server, the clock of this machine."""
        return self._lazy_backend.get().clock

    def _open(self) -> Backend:
        if self.url.startswith(SERVER):
            return RemoteBackend(self.url, key=self._key, clock=self._clock or own_clock())
        return LocalBackend(self.settings(self.url), clock=self._clock)

    def _refuse_to_open(self, tx: object) -> None:
        """Raise if opening, which writes to the file, would wait for the caller's transaction."""
        if tx is not None and self.url.startswith(SQLITE) and not self._lazy_backend.is_open:
            raise InvalidRequest("call app.open() before the transaction that is given as tx=")
