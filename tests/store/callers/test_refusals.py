"""Anything but a transaction on the store's own database is refused, with the reason."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from penstock.domain.errors import InvalidRequest, ShuttingDown
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.factories import a_new_message
from tests.store.callers.transaction_kinds import ADD, CallerTransaction
from tests.store.driver import StoreDriver

SQLITE = pytest.mark.parametrize("kind", [("sqlite", "sqlite3")], ids=[""], indirect=True)
POSTGRES = pytest.mark.parametrize("kind", [("postgres", "psycopg")], ids=[""], indirect=True)


def refused(driver: StoreDriver, tx: object) -> str:
    """The reason of the refusal; nothing was sent."""
    mail = driver.queue()
    with pytest.raises(InvalidRequest) as refusal:
        driver.store.send_in(tx, [a_new_message(mail, now=driver.now)])
    assert driver.claim_ids(mail) == []
    return str(refusal.value)


def refused_on_a_loop(driver: StoreDriver, connect) -> str:
    mail = driver.queue()

    async def run() -> str:
        tx = await connect()
        with pytest.raises(InvalidRequest) as refusal:
            await driver.store.send_in_async(tx, [a_new_message(mail, now=driver.now)])
        await tx.close()
        return str(refusal.value)

    text = asyncio.run(run())
    assert driver.claim_ids(mail) == []
    return text


# --- no transaction ---


@SQLITE
def test_sqlite3_in_autocommit(driver: StoreDriver, where: str) -> None:
    tx = sqlite3.connect(where, isolation_level=None)

    assert "autocommit" in refused(driver, tx)

    tx.execute("BEGIN")
    mail = driver.queue("another")
    driver.store.send_in(tx, [a_new_message(mail, now=driver.now)])
    tx.execute("COMMIT")
    tx.close()
    assert len(driver.claim_ids(mail)) == 1


@POSTGRES
def test_postgres_in_autocommit(driver: StoreDriver, where: str) -> None:
    with psycopg.connect(where, autocommit=True) as one:
        assert "autocommit" in refused(driver, one)
        mail = driver.queue("another")
        with one.transaction():
            driver.store.send_in(one, [a_new_message(mail, now=driver.now)])
        assert len(driver.claim_ids(mail)) == 1
    two = psycopg2.connect(where)
    two.autocommit = True
    driver.clock.advance(ms=1)
    with pytest.raises(InvalidRequest, match="autocommit"):
        driver.store.send_in(two, [a_new_message(mail, now=driver.now)])
    two.close()


@POSTGRES
def test_asyncpg_outside_of_a_transaction(driver: StoreDriver, where: str) -> None:
    assert "autocommit" in refused_on_a_loop(driver, lambda: asyncpg.connect(where))


@POSTGRES
def test_sqlalchemy_in_autocommit(driver: StoreDriver, where: str) -> None:
    url = where.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as tx:
        assert "autocommit" in refused(driver, tx)
    engine.dispose()


@POSTGRES
def test_a_transaction_that_has_failed(driver: StoreDriver, transaction: CallerTransaction) -> None:
    mail = driver.queue()
    with pytest.raises(psycopg.Error):
        transaction.run("SELECT 1 / 0")

    with pytest.raises(InvalidRequest, match="rolled back"):
        transaction.send(driver.store, [a_new_message(mail, now=driver.now)])


@POSTGRES
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_transaction_with_an_older_view(
    driver: StoreDriver, transaction: CallerTransaction, level: str
) -> None:
    mail = driver.queue()
    transaction.run(f"SET TRANSACTION ISOLATION LEVEL {level}")

    with pytest.raises(InvalidRequest, match="READ COMMITTED"):
        transaction.send(driver.store, [a_new_message(mail, now=driver.now)])
    transaction.run(ADD.format("a"))
    transaction.commit()


# --- not this database ---


@SQLITE
def test_another_file(driver: StoreDriver, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as tx:
        tx.execute("CREATE TABLE t (a)")
        assert "own file" in refused(driver, tx)
    tx.close()
    memory = sqlite3.connect(":memory:")
    with pytest.raises(InvalidRequest, match="own file"):
        driver.store.send_in(memory, [])
    memory.close()


@SQLITE
def test_the_stores_file_under_another_name(
    driver: StoreDriver, where: str, tmp_path: Path
) -> None:
    (tmp_path / "link.db").symlink_to(where)
    mail = driver.queue()
    with sqlite3.connect(tmp_path / "link.db") as tx:
        driver.store.send_in(tx, [a_new_message(mail, now=driver.now)])
    tx.close()

    assert len(driver.claim_ids(mail)) == 1


@POSTGRES
def test_another_database(driver: StoreDriver, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as tx:
        assert "own database" in refused(driver, tx)
        tx.execute("SELECT 1")  # it is as usable as before


@POSTGRES
def test_a_database_of_the_same_name_on_another_server(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    driver.store.callers._location.secret = "ab" * 32  # type: ignore[attr-defined]

    with pytest.raises(InvalidRequest, match="own database"):
        transaction.send(driver.store, [])


@SQLITE
def test_the_other_kind_of_database(driver: StoreDriver, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as tx:
        assert "the store is SQLite" in refused(driver, tx)


@POSTGRES
def test_sqlite_for_postgres(driver: StoreDriver) -> None:
    tx = sqlite3.connect(":memory:")
    assert "the store is PostgreSQL" in refused(driver, tx)
    tx.close()


def test_a_file_with_checksums(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "penstock.db")
    driver = StoreDriver(store, ManualClock())
    tx = sqlite3.connect(":memory:")

    assert "?checksums=off" in refused(driver, tx)
    tx.close()
    store.close()


# --- not a transaction at all, or of the other kind ---


@SQLITE
def test_something_else(driver: StoreDriver) -> None:
    assert "supported are" in refused(driver, object())
    assert "supported are" in refused_text(driver, "sqlite3.Connection")


def refused_text(driver: StoreDriver, tx: object) -> str:
    with pytest.raises(InvalidRequest) as refusal:
        driver.store.act_in(tx, [])
    return str(refusal.value)


@POSTGRES
def test_asynchronous_connections_need_the_asynchronous_form_and_vice_versa(
    driver: StoreDriver, where: str
) -> None:
    async def connect() -> None:
        tx = await asyncpg.connect(where)
        assert "event loop" in refused_text(driver, tx)
        await tx.close()
        engine = create_async_engine(where.replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.connect() as connection:
            assert "event loop" in refused_text(driver, connection)
        await engine.dispose()
        with psycopg.connect(where) as plain, pytest.raises(InvalidRequest, match="synchronous"):
            await driver.store.send_in_async(plain, [])

    asyncio.run(connect())


@SQLITE
def test_a_store_that_is_closed(driver: StoreDriver, transaction: CallerTransaction) -> None:
    driver.store.close()

    with pytest.raises(ShuttingDown):
        transaction.send(driver.store, [])
