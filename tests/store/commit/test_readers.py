"""Readers close the files while a writer recovers from a failed sync."""

import threading
from pathlib import Path

from penstock.domain.limits import MINUTE
from penstock.store.commit.outage import StoreOutage
from penstock.store.commit.readers import Readers
from penstock.store.commit.session import SqlSession
from penstock.store.sqlite.connection import SqliteDatabase
from penstock.store.store import migrate_sqlite
from penstock.supervision.health import NodeHealth
from tests.clocks import NOON
from tests.store.open_files import connections_to

SHORT_S = 0.05
LONG_S = 30


def test_while_readers_are_closed_none_is_open_and_reads_wait(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    migrate_sqlite(path, now=NOON)
    opened: list[SqliteDatabase] = []

    def open_session() -> SqlSession:
        opened.append(SqliteDatabase(path, read_only=True))
        return SqlSession(opened[-1])

    def find() -> None:
        readers.submit(lambda session: session.queues.find("mail")).ticket.result()

    readers = Readers(open_session, StoreOutage(), health=NodeHealth(), stuck_ms=MINUTE)
    find()
    late = threading.Thread(target=find, daemon=True)
    with readers.all_closed():
        late.start()
        late.join(SHORT_S)
        assert late.is_alive()
        assert len(opened) == 1
        assert not connections_to(path)

    late.join(LONG_S)
    assert len(opened) == 2
    readers.close()
