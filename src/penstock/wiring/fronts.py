"""Connects the processes of a node: fronts, which serve HTTP, and the writer."""

from __future__ import annotations

import asyncio

from penstock.ports.link import WriterDuties
from penstock.store.link.front_links import FrontLinks
from penstock.store.link.writer_link import StoreWriterLink
from penstock.store.store import SqlStore
from penstock.wiring.broker import Broker


def link_to_writer(broker: Broker) -> StoreWriterLink:
    """For a front, on its event loop: the link to the writer, not connected yet.

    On SQLite, hot verbs go through it.  On PostgreSQL every process has connections of its own.
    """
    store = broker.store
    assert isinstance(store, SqlStore)
    link = StoreWriterLink(asyncio.get_running_loop(), on_forget=broker.directory.forget)
    if broker.settings.sqlite_path is not None:
        store.forward_to(link)
    return link


def links_to_fronts(broker: Broker, duties: WriterDuties) -> FrontLinks:
    """For the writer."""
    return FrontLinks(broker.store, duties)
