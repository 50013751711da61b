"""Days that are dropped free their space, and `penstock doctor` shows where space is used."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from penstock.domain.limits import DAY
from penstock.domain.store.finding import Finding
from penstock.store.commit.session import SqlSession
from penstock.store.database import Database
from penstock.store.maintenance.space import examine_days, examine_queues
from penstock.store.mariadb.connection import MariadbDatabase
from penstock.store.mariadb.store import migrate as migrate_mariadb
from penstock.store.mariadb.url import parse as parse_mariadb
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.url import parse
from penstock.store.sqlite.connection import SqliteDatabase
from tests.clocks import ManualClock
from tests.store.backends import mariadb_at, postgres_at, sqlite_at
from tests.store.driver import StoreDriver
from tests.store.postgres.helpers import by_hand

# Databases cannot compress it.
BODY = '"' + "".join(sha256(b"%d" % n).hexdigest() for n in range(300)) + '"'


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[StoreDriver]:
    store = sqlite_at(tmp_path)()
    yield StoreDriver(store, ManualClock())
    store.close()


@pytest.fixture
def postgres(migrated_url: str) -> Iterator[StoreDriver]:
    store = postgres_at(migrated_url)()
    yield StoreDriver(store, ManualClock())
    store.close()


@pytest.fixture
def mariadb(mariadb_url: str) -> Iterator[StoreDriver]:
    migrate_mariadb(mariadb_url)
    store = mariadb_at(mariadb_url)()
    yield StoreDriver(store, ManualClock())
    store.close()


def fill_a_day(driver: StoreDriver) -> int:
    """Send and complete messages; returns the day."""
    mail = driver.queues[0] if driver.queues else driver.queue("mail")
    driver.send_many(mail, 100, body=BODY)
    for message in driver.claim(mail, 100):
        driver.complete(message)
    day = driver.now // DAY
    driver.clock.advance(days=1)
    return day


def drop(driver: StoreDriver, day: int) -> None:
    driver.write(lambda s: s.maintenance.drop_day(day, now=driver.now))


def texts(findings: Iterator[Finding]) -> list[str]:
    return [finding.text for finding in findings]


def test_sqlite_uses_the_space_of_dropped_days_again(sqlite, tmp_path):
    def pages() -> int:
        db = apsw.Connection(str(tmp_path / "penstock.db"), flags=apsw.SQLITE_OPEN_READONLY)
        count = int(db.pragma("page_count"))
        db.close()
        return count

    drop(sqlite, fill_a_day(sqlite))
    first = pages()
    for _ in range(3):
        drop(sqlite, fill_a_day(sqlite))

    assert pages() <= first * 1.05
    assert first * 4096 > 100 * len(BODY), "there was something to free"


def test_postgresql_removes_the_files_of_dropped_days(postgres, migrated_url):
    size = "SELECT pg_database_size(current_database())"
    day = fill_a_day(postgres)
    drop(postgres, day)
    [(before,)] = by_hand(migrated_url, size)
    days = [fill_a_day(postgres) for _ in range(2)]
    [(full,)] = by_hand(migrated_url, size)
    for day in days:
        drop(postgres, day)
    [(after,)] = by_hand(migrated_url, size)

    assert full - before > 100 * len(BODY)
    assert after - before < (full - before) / 4


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb"])
def test_the_space_of_each_day_and_queue_is_shown(request, backend, tmp_path):
    driver: StoreDriver = request.getfixturevalue(backend)
    day = fill_a_day(driver)
    driver.send_many(driver.queue("other"), 10, body=BODY)
    if backend == "sqlite":
        db: Database = SqliteDatabase(tmp_path / "penstock.db", read_only=True)
    elif backend == "postgres":
        db = PostgresDatabase(parse(request.getfixturevalue("migrated_url")), read_only=True)
    else:
        url = parse_mariadb(request.getfixturevalue("mariadb_url"))
        db = MariadbDatabase(url, read_only=True)
    session = SqlSession(db)

    by_day, by_queue = texts(examine_days(session)), texts(examine_queues(session))
    session.db.close()

    [line] = [text for text in by_day if "body" in text and "history" in text][:1]
    assert line.startswith("20"), f"the date of day {day}"
    assert by_queue == [
        "mail: about 1.9 MiB (0 messages, 100 in history)",
        "other: about 0.2 MiB (10 messages, 0 in history)",
    ]
