"""On PostgreSQL a row may appear behind one with a greater number: the archive waits for it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.lake import layout as lake
from penstock.domain.message.lease import Verb
from penstock.ports.store import Store
from penstock.store.postgres.store import open_postgres
from tests.factories import an_act
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.backends import RenewableDatabase
from tests.store.driver import StoreDriver


@pytest.fixture
def store(renewable_database: RenewableDatabase) -> Iterator[Store]:
    store = open_postgres(renewable_database.renew(), lanes=2)
    yield store
    store.close()


@pytest.fixture
def application(
    renewable_database: RenewableDatabase, store: Store
) -> Iterator[psycopg.Connection]:
    """The application's own connection, in whose transactions messages are completed."""
    with psycopg.connect(renewable_database.url) as connection:
        yield connection


def complete_in(store_driver: StoreDriver, tx: psycopg.Connection, held: object) -> None:
    [answer] = store_driver.store.act_in(tx, [an_act(Verb.COMPLETE, held, now=store_driver.now)])  # type: ignore[arg-type]
    assert answer.state == "done", answer  # type: ignore[union-attr]


def test_an_ending_that_is_committed_late_is_not_missed(
    driver: ArchiverDriver, application
) -> None:
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    late, early = store_driver.send_many(mail, 2)
    held = {message.id: message for message in store_driver.claim(mail, 2)}
    complete_in(store_driver, application, held[late])
    store_driver.complete(held[early])

    archived = driver.run()
    assert not archived.is_final
    assert driver.rows(lake.HISTORY) == [], "the number of the late one is the smaller"

    application.commit()
    assert driver.run().is_final
    assert sorted(driver.ids(lake.HISTORY)) == sorted([late, early])


def test_a_rolled_back_transaction_leaves_a_gap_that_nothing_waits_for(
    driver: ArchiverDriver, application
):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    back, early = store_driver.send_many(mail, 2)
    held = {message.id: message for message in store_driver.claim(mail, 2)}
    complete_in(store_driver, application, held[back])
    store_driver.complete(held[early])
    application.rollback()

    driver.run()

    assert driver.ids(lake.HISTORY) == [early]


def test_a_later_transaction_does_not_hold_back_earlier_rows(driver: ArchiverDriver, application):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    first, second, third = store_driver.send_many(mail, 3)
    held = {message.id: message for message in store_driver.claim(mail, 3)}
    complete_in(store_driver, application, held[first])
    store_driver.complete(held[second])
    assert not driver.run().is_final

    with psycopg.connect(str(application.info.dsn)) as other:
        complete_in(store_driver, other, held[third])
        application.commit()
        driver.run()
        assert sorted(driver.ids(lake.HISTORY)) == sorted([first, second])
        other.commit()
    driver.run()
    assert sorted(driver.ids(lake.HISTORY)) == sorted([first, second, third])


def test_snapshots_wait_for_a_transaction_and_then_report_it(driver: ArchiverDriver, application):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    store_driver.send(mail)
    [held] = store_driver.claim(mail)
    complete_in(store_driver, application, held)
    with pytest.raises(StoreUnavailable, match="transaction"):
        driver.snapshots.take()
    application.rollback()
    assert driver.snapshots.take().rows == 1


def test_an_ending_committed_while_a_snapshot_is_taken_is_in_it(
    driver: ArchiverDriver, application
):
    """It ends in a transaction that began after the snapshot did, and ends before it is read."""
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    [message_id] = store_driver.send_many(mail, 1)
    [held] = store_driver.claim(mail)
    taken = driver.snapshots._final_cut()
    store_driver.clock.advance(ms=5)
    complete_in(store_driver, application, held)
    application.commit()
    rows = driver.snapshots._ended(taken, [], store_driver.now - 5)
    assert [row[1] for row in rows] == [message_id]
