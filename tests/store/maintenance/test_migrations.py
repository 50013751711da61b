"""Migrations: numbered, checksummed, forward only, all or nothing."""

import re
import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.domain.errors import PenstockError, StoreRefused
from penstock.store.database import Database
from penstock.store.maintenance import migrate as migrations
from penstock.store.maintenance.migrate import Migration
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.store import open_postgres
from penstock.store.postgres.url import parse
from penstock.store.sqlite.connection import SqliteDatabase
from penstock.store.store import open_sqlite
from tests.clocks import NOON
from tests.store.backends import BACKENDS

Connect = Callable[[], Database]


@pytest.fixture
def connect(backend: str, request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Connections to the same empty database."""
    opened: list[Database] = []
    if backend == "sqlite":
        path = request.getfixturevalue("tmp_path") / "empty.db"
    else:
        url = parse(request.getfixturevalue("postgres_url"))

    def connect() -> Database:
        db = SqliteDatabase(path) if backend == "sqlite" else PostgresDatabase(url)
        opened.append(db)
        return db

    yield connect
    for db in opened:
        db.close()


def in_transaction(db, do):
    db.begin(durable=False)
    try:
        answer = do()
        db.commit()
    except BaseException:
        db.rollback()
        raise
    return answer


def pending(db):
    return in_transaction(db, lambda: migrations.pending(db))


def tamper(db, statement):
    in_transaction(db, lambda: db.script(statement))


@pytest.mark.parametrize("dialect", BACKENDS)
def test_migrations_are_numbered_without_gaps(dialect):
    shipped = migrations.shipped(dialect)

    assert [m.number for m in shipped] == list(range(1, len(shipped) + 1))


@pytest.mark.parametrize("dialect", BACKENDS)
def test_migrations_have_plain_names_and_say_why_they_are_there(dialect):
    for migration in migrations.shipped(dialect):
        assert re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", migration.name)
        assert migration.text.startswith("-- Why:")


def test_both_backends_have_the_same_migrations():
    sqlite, postgres = map(migrations.shipped, BACKENDS)

    assert [(m.number, m.name) for m in sqlite] == [(m.number, m.name) for m in postgres]


def test_the_checksum_is_of_the_text_and_of_nothing_else():
    one = Migration(1, "one", "SELECT 1;")

    assert one.checksum == Migration(2, "other", "SELECT 1;").checksum
    assert one.checksum != Migration(1, "one", "SELECT 2;").checksum


def test_an_empty_database_gets_all_migrations(connect, backend):
    db = connect()
    assert pending(db) == migrations.shipped(backend)

    applied = migrations.apply(db, now=NOON)

    assert applied == migrations.shipped(backend)
    assert pending(db) == []


def test_migrating_twice_changes_nothing(connect):
    migrations.apply(connect(), now=NOON)

    assert migrations.apply(connect(), now=NOON + 1) == []


def test_a_migration_edited_after_it_was_applied_is_refused(connect):
    db = connect()
    migrations.apply(db, now=NOON)
    tamper(db, "UPDATE migration SET checksum = 'another' WHERE number = 1")

    with pytest.raises(StoreRefused, match=r"0001.*Drain its queues.*or restore a backup"):
        pending(db)
    with pytest.raises(StoreRefused, match="0001"):
        migrations.apply(db, now=NOON)


def test_a_store_newer_than_the_program_is_refused(connect):
    db = connect()
    migrations.apply(db, now=NOON)
    tamper(
        db,
        "INSERT INTO migration (number, name, checksum, applied_at)"
        " VALUES (9999, 'of_the_future', 'x', 0)",
    )

    with pytest.raises(StoreRefused, match=r"9999.*install the version that wrote it"):
        pending(db)


def test_a_migration_that_fails_leaves_nothing_behind(connect, monkeypatch):
    db = connect()
    good = Migration(1, "good", "CREATE TABLE tried (n INTEGER);")
    bad = Migration(2, "bad", "CREATE TABLE tried_too (n INTEGER); SELECT nonsense FROM tried;")
    monkeypatch.setattr(migrations, "shipped", lambda _: [good, bad])

    with pytest.raises(PenstockError):
        migrations.apply(db, now=NOON)

    monkeypatch.setattr(migrations, "shipped", lambda _: [good])
    again = connect()
    assert pending(again) == [good]
    assert migrations.apply(again, now=NOON) == [good]


def test_a_later_migration_is_applied_to_a_store_that_has_the_rest(connect, monkeypatch, backend):
    db = connect()
    migrations.apply(db, now=NOON)
    shipped = migrations.shipped(backend)
    later = Migration(shipped[-1].number + 1, "later", "CREATE TABLE later (n INTEGER);")
    monkeypatch.setattr(migrations, "shipped", lambda _: [*shipped, later])

    assert pending(db) == [later]
    assert migrations.apply(db, now=NOON) == [later]
    assert pending(db) == []


def test_one_of_several_processes_that_start_at_once_migrates(connect, backend):
    databases = [connect() for _ in range(4)]
    applied = []
    threads = [
        threading.Thread(target=lambda db=db: applied.append(migrations.apply(db, now=NOON)))
        for db in databases
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(len, applied)) == [0, 0, 0, len(migrations.shipped(backend))]


def test_postgres_is_not_opened_before_it_is_migrated(postgres_url):
    with pytest.raises(StoreRefused, match="penstock migrate"):
        open_postgres(postgres_url)


def test_sqlite_is_migrated_when_it_is_opened(tmp_path):
    path = tmp_path / "new" / "penstock.db"

    open_sqlite(path).close()

    db = SqliteDatabase(path)
    assert pending(db) == []
    db.close()
