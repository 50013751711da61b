"""One question, two ways to ask it: of a store in the same process, or of a server.

`in_store` is what runs in a transaction: the store's own, or the caller's (`tx`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.client.backend import Backing
from penstock.client.errors import no_transaction
from penstock.client.local.backend import Embedded, wait_for
from penstock.client.remote.backend import OverHttp
from penstock.client.remote.server import Remote
from penstock.ports.store import Session
from penstock.wiring.broker import Broker

T = TypeVar("T")


class Ask(ABC, Generic[T]):
    @abstractmethod
    def in_store(self, broker: Broker) -> Callable[[Session], T]: ...

    @abstractmethod
    def over_http(self, remote: Remote) -> T: ...


def ask(backing: Backing, what: Ask[T], tx: object = None) -> T:
    if isinstance(backing, OverHttp):
        if tx is not None:
            raise no_transaction()
        return what.over_http(backing.remote)
    assert isinstance(backing, Embedded)
    broker = backing.broker
    do = what.in_store(broker)
    if tx is not None:
        return broker.store.write_in(tx, do)
    return backing.write(lambda: broker.store.write(do))


async def ask_async(backing: Backing, what: Ask[T], tx: object = None) -> T:
    if isinstance(backing, OverHttp):
        return await asyncio.to_thread(ask, backing, what, tx)
    broker = _broker(backing)
    do = what.in_store(broker)
    if tx is not None:
        return await broker.store.write_in_async(tx, do)
    return await broker.store.write(do)


def look(backing: Backing, what: Ask[T], tx: object = None) -> T:
    """`ask` for what only reads: beside the writer, or in the caller's transaction."""
    if tx is not None or isinstance(backing, OverHttp):
        return ask(backing, what, tx)
    broker = _broker(backing)
    do = what.in_store(broker)
    return wait_for(lambda: broker.store.read(do))


async def look_async(backing: Backing, what: Ask[T], tx: object = None) -> T:
    if tx is not None or isinstance(backing, OverHttp):
        return await ask_async(backing, what, tx)
    broker = _broker(backing)
    return await broker.store.read(what.in_store(broker))


def _broker(backing: Backing) -> Broker:
    assert isinstance(backing, Embedded)
    return backing.broker
