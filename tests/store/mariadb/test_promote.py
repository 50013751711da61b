"""A SQLite store that is promoted to MariaDB continues there."""

from contextlib import closing

import apsw
import pytest

from penstock.domain.errors import StoreRefused
from penstock.store.maintenance import promote_targets
from penstock.store.maintenance.promote import promote
from penstock.store.mariadb.store import open_mariadb
from tests.store.maintenance.test_promote import (
    NOT_COPIED,
    full,
    path,
    test_a_suspended_job_continues_in_the_new_store,
    test_the_new_store_answers_as_the_old_one_did,
    test_workers_and_facts_move_along_and_new_facts_follow_them,
)

__all__ = [
    "full",
    "path",
    "test_a_suspended_job_continues_in_the_new_store",
    "test_the_new_store_answers_as_the_old_one_did",
    "test_workers_and_facts_move_along_and_new_facts_follow_them",
]


@pytest.fixture
def promoted(full, path, mariadb_url):
    """The old driver and the new store."""
    full.store.close()
    promote(path, mariadb_url, progress=lambda *_: None)
    with closing(open_mariadb(mariadb_url)) as store:
        yield full, store


def test_every_row_of_every_table_arrives(promoted, path, mariadb_url, mariadb_server):
    source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [t for (t,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables = [t for t in tables if t not in NOT_COPIED and not t.startswith("sqlite")]

    with mariadb_server.connect(mariadb_url) as target, target.cursor() as cursor:
        for table in tables:
            names = [name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")]
            text = f"SELECT {', '.join(f'`{name}`' for name in names)} FROM `{table}`"
            cursor.execute(text)
            assert set(cursor.fetchall()) == set(source.execute(text)), table

    assert {"message", "queue", "counter", "dedup", "api_key", "meta", "day"} <= set(tables)


def test_a_promotion_that_fails_leaves_no_row_and_can_be_repeated(
    full, path, mariadb_url, monkeypatch
):
    full.store.close()
    copy = promote_targets.MariadbTarget.copy

    def fail_at_messages(self, table, columns, rows):
        if table == "message":
            raise RuntimeError("the network is gone")
        copy(self, table, columns, rows)

    with monkeypatch.context() as patch:
        patch.setattr(promote_targets.MariadbTarget, "copy", fail_at_messages)
        with pytest.raises(RuntimeError, match="the network is gone"):
            promote(path, mariadb_url, progress=lambda *_: None)

    counts = promote(path, mariadb_url, progress=lambda *_: None)

    assert counts["message"] > 0


def test_a_store_that_is_not_empty_is_refused(promoted, path, mariadb_url):
    with pytest.raises(StoreRefused, match="the MariaDB store is not empty"):
        promote(path, mariadb_url, progress=lambda *_: None)
