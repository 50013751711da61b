"""An old transaction elsewhere in the database keeps dead rows from being removed.

These tests count the pages that statements read, because times depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.store.counter_checks import check_counters
from tests.store.postgres.helpers import by_hand


@pytest.fixture
def held_snapshot(postgres_url: str) -> Iterator[None]:
    """A session that reads on an old snapshot."""
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM message")
        yield


def pages_read(url: str, statement: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        explained = f"EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) {statement}"
        [([plan],)] = connection.execute(explained.encode()).fetchall()
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]


def test_a_commit_does_not_read_the_dead_versions_of_earlier_counters(
    driver, postgres_url, held_snapshot
):
    mail = driver.queue()
    for _ in range(400):
        driver.send(mail)

    for queue_no, row in by_hand(postgres_url, "SELECT queue_no, stripe FROM counter"):
        where = f"queue_no = {queue_no} AND stripe = {row}"
        assert pages_read(postgres_url, f"SELECT * FROM counter WHERE {where}") <= 5
    assert driver.counts(mail).ready == 400
    check_counters(driver)


def test_the_counters_of_closed_connections_are_merged(open_one, postgres_url):
    """Otherwise each restart of a node would leave rows that every reader adds up."""
    mail = open_one(lanes=1).queue()
    for _ in range(3):
        driver = open_one(lanes=1)
        for _ in range(40):
            driver.send(mail)
    by_hand(postgres_url, "UPDATE counter SET stripe = stripe / 64 * 64 + 7")  # of the same slot

    first = open_one(lanes=1)
    session = first.write(lambda s: s)
    session.transaction.counter_rows.number = 7
    first.send(mail)

    assert len(by_hand(postgres_url, "SELECT 1 FROM counter")) == 1
    assert first.counts(mail).ready == 121


def test_an_undone_transaction_leaves_the_counters_right(driver, postgres_url):
    """Also when it was the one that continued in a new row."""
    mail = driver.queue()

    def fail(session) -> None:
        session.queues.lock("mail")
        session.transaction.count(mail.queue_no).sent_total += 1
        session.transaction.close()
        raise ValueError

    for _ in range(33):
        driver.send(mail)
        with pytest.raises(Exception):  # noqa: B017, PT011
            driver.write(fail)
        driver.send(mail)

    assert driver.counts(mail).ready == 66
    assert len(by_hand(postgres_url, "SELECT 1 FROM counter")) <= 2
    check_counters(driver)
