"""Settings of a caller's PostgreSQL connection neither affect us nor are changed by us."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row

from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Acted, Sent
from penstock.store.postgres.store import migrate, open_postgres
from tests.factories import a_new_message, an_act
from tests.store.callers.conftest import OpenTransaction
from tests.store.callers.transaction_kinds import CallerTransaction
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver

SETTINGS = "SELECT current_setting('search_path'), current_setting('enable_seqscan')"


@pytest.fixture
def kind() -> tuple[str, str]:
    return ("postgres", "psycopg")


def test_a_schema_of_our_own_is_found_and_the_callers_tables_are_left_alone(
    postgres_url: str, clock
) -> None:
    with psycopg.connect(postgres_url) as setup:
        setup.execute("CREATE SCHEMA jobs")
        setup.execute("CREATE TABLE message (mine text)")
        setup.execute("CREATE TABLE meta (mine text)")
    ours = f"{postgres_url}?options=-csearch_path%3Djobs"
    migrate(ours)
    store = open_postgres(ours, lanes=1)
    driver = StoreDriver(store, clock)
    mail = driver.queue()
    with psycopg.connect(postgres_url) as tx:
        before = tx.execute(SETTINGS).fetchone()
        tx.execute("CREATE TEMPORARY TABLE queue (mine text)")
        [sent] = store.send_in(tx, [a_new_message(mail, now=driver.now)])
        assert tx.execute(SETTINGS).fetchone() == before
        tx.execute("INSERT INTO message VALUES ('x')")
        tx.execute("INSERT INTO queue VALUES ('x')")

    assert isinstance(sent, Sent)
    assert driver.claim_ids(mail) == [sent.id]
    check_counters(driver)
    store.close()


def test_a_refusal_restores_all_settings(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    before = transaction.run(SETTINGS)

    def fail(_session) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        transaction.write(driver.store, fail)

    assert transaction.run(SETTINGS) == before


def test_the_callers_kind_of_rows_does_not_matter(driver: StoreDriver, where: str) -> None:
    mail = driver.queue(ordering=Ordering.GROUP)
    with psycopg.connect(where, row_factory=dict_row) as tx:
        driver.store.send_in(tx, [a_new_message(mail, now=driver.now, group="g")])

    assert len(driver.claim_ids(mail)) == 1


def test_a_codec_for_json_does_not_matter(driver: StoreDriver, where: str) -> None:
    mail = driver.queue(ordering=Ordering.GROUP)
    driver.send(mail, group="g")
    [message] = driver.claim(mail)

    async def run() -> None:
        tx = await asyncpg.connect(where)
        await tx.set_type_codec("json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        async with tx.transaction():
            new = a_new_message(mail, now=driver.now, group="g", dedup_key="k")
            [sent] = await driver.store.send_in_async(tx, [new])
            done = an_act(Verb.COMPLETE, message, now=driver.now)
            [acted] = await driver.store.act_in_async(tx, [done])
        await tx.close()
        assert isinstance(sent, Sent)
        assert isinstance(acted, Acted)

    asyncio.run(run())
    assert len(driver.claim_ids(mail)) == 1
    check_counters(driver)


def test_a_pool_of_asyncpg(driver: StoreDriver, where: str) -> None:
    mail = driver.queue()

    async def run() -> None:
        async with (
            asyncpg.create_pool(where, min_size=1) as pool,
            pool.acquire() as tx,
            tx.transaction(),
        ):
            await driver.store.send_in_async(tx, [a_new_message(mail, now=driver.now)])

    asyncio.run(run())
    assert len(driver.claim_ids(mail)) == 1


def test_a_waiting_claim_is_woken_by_the_commit(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    wakeups: list[Mapping[int, int]] = []
    arrived = threading.Event()
    assert driver.store.wakeups.is_listening.wait(WAIT_S)  # type: ignore[attr-defined]

    def hear(woken: Mapping[int, int]) -> None:
        wakeups.append(dict(woken))
        arrived.set()

    driver.store.listen(hear)  # type: ignore[attr-defined]
    transaction.send(driver.store, [a_new_message(mail, now=driver.now)])
    assert not arrived.wait(0.2)
    transaction.commit()

    assert arrived.wait(WAIT_S)
    assert wakeups == [{mail.queue_no: 1}]


def test_a_cancelled_send_leaves_a_connection_that_works(
    driver: StoreDriver, where: str, transaction: CallerTransaction
) -> None:
    ordered = driver.queue(ordering=Ordering.GROUP)
    transaction.send(
        driver.store, [a_new_message(ordered, now=driver.now, group="g")]
    )  # holds the group

    async def run() -> None:
        tx = await asyncpg.connect(where)
        new = [a_new_message(ordered, now=driver.now, group="g")]
        async with tx.transaction():
            sending = asyncio.ensure_future(driver.store.send_in_async(tx, new))
            await until_a_lock_is_waited_for(where)
            sending.cancel()
            await asyncio.sleep(0)
            transaction.commit()
            with pytest.raises(asyncio.CancelledError):
                await sending
            assert await tx.fetchval("SELECT 1") == 1
        await tx.close()

    asyncio.run(run())
    assert len(driver.claim_ids(ordered)) == 1
    check_counters(driver)


async def until_a_lock_is_waited_for(where: str) -> None:
    watcher = await asyncpg.connect(where)
    for _ in range(1_000):
        if await watcher.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            break
        await asyncio.sleep(0.01)
    await watcher.close()


def test_a_message_that_a_caller_completes_is_not_given_to_others_meanwhile(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    driver.send(mail)
    [message] = driver.claim(mail)
    transaction.act(driver.store, [an_act(Verb.COMPLETE, message, now=driver.now)])

    driver.clock.advance(days=1)  # its lease has run out long ago
    assert driver.claim_ids(mail) == []
    transaction.commit()

    assert driver.claim_ids(mail) == []
    check_counters(driver)


def test_the_first_caller_of_a_day_does_not_delay_the_others(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    driver.clock.advance(days=40)
    transaction.send(driver.store, [a_new_message(mail, now=driver.now)])

    driver.send(mail)  # in tables that are there for both
    transaction.rollback()

    assert len(driver.claim_ids(mail)) == 1


def test_sends_in_opposite_order_do_not_hang(
    driver: StoreDriver, open_transaction: OpenTransaction
) -> None:
    """The server detects it: one must be rolled back, and the other one succeeds."""
    ordered = driver.queue(ordering=Ordering.GROUP)
    one, other = open_transaction(), open_transaction()
    one.send(driver.store, [a_new_message(ordered, now=driver.now, group="a")])
    other.send(driver.store, [a_new_message(ordered, now=driver.now, group="b")])
    errors: list[Exception] = []

    def send(transaction: CallerTransaction, group: str) -> None:
        try:
            transaction.send(driver.store, [a_new_message(ordered, now=driver.now, group=group)])
            transaction.commit()
        except Exception as error:
            errors.append(error)
            transaction.rollback()

    threads = [
        threading.Thread(target=send, args=(one, "b")),
        threading.Thread(target=send, args=(other, "a")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)

    assert ["roll tx back and run it again" in str(error) for error in errors] == [True]
    assert len(driver.claim_ids(ordered)) == 2
    check_counters(driver)
