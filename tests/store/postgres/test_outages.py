"""A server that restarts, does not answer, or detects a deadlock."""

import threading

import psycopg
import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.limits import DAY
from penstock.domain.message import lifecycle
from penstock.domain.queue.queue import QueueSettings
from penstock.store.postgres.libpq import Link
from tests.clocks import NOON
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.postgres.helpers import at_once, cut_off, stopped


def test_after_a_restart_of_the_server_the_store_works_again(drivers, postgres_cluster):
    mail = drivers[0].queue()
    kept = drivers[0].send(mail)

    postgres_cluster.restart()

    assert drivers[0].claim_ids(mail) == [kept]
    assert drivers[0].read(lambda s: s.queues.find("mail")) == mail


def test_a_connection_that_was_cut_is_never_alive_again(postgres_url):
    connection = psycopg.connect(postgres_url, autocommit=True)
    link = Link(connection, patience_ms=1_000)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])

    assert [link.is_alive for _ in range(3)] == [False] * 3
    connection.close()


def test_a_connection_cut_in_mid_transaction_is_reported_and_nothing_is_kept(drivers, postgres_url):
    mail = drivers[0].queue()

    def add_and_be_cut_off(session) -> None:
        session.queues.add("half", QueueSettings(), now=NOON)
        cut_off(postgres_url)

    with pytest.raises(StoreUnavailable):
        drivers[0].write(add_and_be_cut_off)

    assert drivers[0].read(lambda s: s.queues.find("half")) is None
    drivers[0].send(mail)


def test_a_server_that_does_not_answer_is_given_up_in_time(open_one, postgres_url):
    driver = open_one("?timeout_ms=2000", lanes=1)
    mail = driver.queue()

    with stopped(postgres_url):
        with pytest.raises(StoreUnavailable, match="no answer for 2500 ms"):
            driver.send(mail)

        driver.send(mail)  # on another connection

    assert driver.counts(mail).ready == 1


def test_a_reader_that_gets_no_answer_is_replaced_too(open_one, postgres_url):
    driver = open_one("?timeout_ms=2000", lanes=1)
    mail = driver.queue()
    for _ in range(2):  # both readers
        driver.counts(mail)

    with stopped(postgres_url):
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                driver.counts(mail)

        assert driver.counts(mail).ready == 0


def test_a_statement_that_waits_too_long_for_a_lock_is_given_up(open_one, postgres_url):
    driver = open_one("?timeout_ms=3000")
    mail = driver.queue()
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE message")

        with pytest.raises(StoreUnavailable, match="lock timeout"):
            driver.send(mail)

    driver.send(mail)


def test_two_transactions_that_wait_for_each_other_both_get_through(drivers, backed_off):
    """One of them is the victim.  It retries only after a pause: at once it would take the row lock
    that the other was about to get, and they would wait for each other again."""
    mail = drivers[0].queue()
    ids = drivers[0].send_many(mail, 2)
    meeting = threading.Barrier(2)

    def change_both(driver: StoreDriver, order: list[str]) -> None:
        is_first_try = True

        def do(session) -> None:
            nonlocal is_first_try
            for n, message_id in enumerate(order):
                session.messages.change(message_id, later, now=NOON)
                if n == 0 and is_first_try:
                    is_first_try = False
                    meeting.wait(WAIT_S)

        driver.write(do)

    def later(message, queue):
        return lifecycle.reschedule(message, due_at=NOON + DAY, now=NOON)

    at_once(lambda: change_both(drivers[0], ids), lambda: change_both(drivers[1], ids[::-1]))

    assert backed_off
    assert drivers[0].counts(mail).waiting == 2
    check_counters(drivers[0])


def test_an_outage_is_one_line_in_the_log_and_recovery_another(drivers, postgres_cluster, caplog):
    driver = drivers[0]
    mail = driver.queue()

    def fail() -> None:
        for ask in (lambda: driver.send(mail), lambda: driver.counts(mail)):
            with pytest.raises(StoreUnavailable):
                ask()

    postgres_cluster.stop()
    try:
        for _ in range(3):
            threads = [threading.Thread(target=fail) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WAIT_S)
    finally:
        postgres_cluster.start()
    driver.send(mail)
    driver.counts(mail)
    driver.send(mail)

    lines = [r.getMessage() for r in caplog.records if r.levelname in ("WARNING", "ERROR")]
    assert [line.partition(":")[0] for line in lines] == [
        "store unavailable",
        "store available again",
    ]
