"""A MariaDB server that restarts, cuts connections, or makes a transaction wait for a lock."""

import threading
from collections import Counter

import pytest

from penstock.domain.errors import StoreUnavailable, TooLarge
from penstock.domain.limits import DAY, Limits
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import QueueSettings
from tests.clocks import NOON
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.postgres.helpers import at_once, until
from tests.support.mariadb import MariadbServer

NODES = 8
GROUPS = 4
EACH = 20
MB = 1024 * 1024


def cut_off(server: MariadbServer, url: str) -> None:
    """End all connections to the database except the one that does it."""
    with server.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM information_schema.processlist"
            " WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        )
        for (number,) in cursor.fetchall():
            cursor.execute(f"KILL {number}")


def test_after_a_restart_of_the_server_the_store_works_again(drivers, mariadb_server):
    mail = drivers[0].queue()
    kept = drivers[0].send(mail)

    mariadb_server.restart()

    assert drivers[0].claim_ids(mail) == [kept]
    assert drivers[0].read(lambda s: s.queues.find("mail")) == mail


def test_a_connection_cut_in_mid_transaction_is_reported_and_nothing_is_kept(
    drivers, mariadb_server, mariadb_url
):
    mail = drivers[0].queue()

    def add_and_be_cut_off(session) -> None:
        session.queues.add("half", QueueSettings(), now=NOON)
        cut_off(mariadb_server, mariadb_url)

    with pytest.raises(StoreUnavailable):
        drivers[0].write(add_and_be_cut_off)

    until(lambda: drivers[0].send(mail), StoreUnavailable)
    assert drivers[0].read(lambda s: s.queues.find("half")) is None


def test_a_transaction_that_waited_too_long_for_a_lock_is_run_again(
    open_one, mariadb_server, mariadb_url
):
    driver = open_one("?timeout_ms=2000", lanes=1)  # waits one second for a lock
    mail = driver.queue(lease_ms=DAY)
    driver.send(mail)
    [held] = driver.claim(mail)
    with mariadb_server.connect(mariadb_url) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute("SELECT 1 FROM message FOR UPDATE")
        timer = threading.Timer(1.5, other.rollback)
        timer.start()

        driver.complete(held)

        timer.join()
    assert driver.counts(mail).leased == 0


def test_tables_of_a_day_that_are_being_read_are_dropped_with_a_later_day(
    open_one, mariadb_server, mariadb_url
):
    driver = open_one("?timeout_ms=2000", lanes=1)  # waits one second for a lock
    mail = driver.queue()
    driver.send(mail)
    today = driver.now // DAY
    driver.clock.advance(days=1)
    driver.send(mail)
    driver.clock.advance(days=1)
    with mariadb_server.connect(mariadb_url) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute(f"SELECT * FROM history_{today}")

        driver.write(lambda s: s.maintenance.drop_day(today, now=driver.now))

        kept = driver.send(mail)
        assert kept in driver.claim_ids(mail)
        other.rollback()
        driver.write(lambda s: s.maintenance.drop_day(today + 1, now=driver.now))
        cursor.execute("SHOW TABLES LIKE 'history_%'")
        assert [name for (name,) in cursor.fetchall()] == [f"history_{today + 2}"]


def test_a_commit_before_the_connection_is_lost_has_not_failed(
    open_one, mariadb_server, monkeypatch
):
    driver = open_one(lanes=1)

    def add_and_be_cut_off_after_the_commit(session) -> None:
        [(process,)] = session.db.rows("session.process")
        session.db.raise_time_limits()
        session.queues.add("mail", QueueSettings(), now=NOON)

        def cut_off(_) -> None:
            with mariadb_server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"KILL {process}")

        monkeypatch.setattr(session.db._link, "limit_waits", cut_off)  # called after the commit

    driver.write(add_and_be_cut_off_after_the_commit)

    mail = driver.read(lambda s: s.queues.find("mail"))
    assert driver.claim_ids(mail) == []


def test_a_body_larger_than_a_packet_is_refused_and_the_store_works_on(driver):
    mail = driver.queue()

    with pytest.raises(TooLarge, match=r"max_allowed_packet \(16777216\)"):
        driver.send(mail, body=f'"{"x" * 16 * MB}"', limits=Limits(max_body_bytes=64 * MB))

    driver.send(mail)


def test_results_that_are_larger_than_a_packet_together_are_stored_one_by_one(driver):
    mail = driver.queue()
    driver.send_many(mail, 2)
    both = driver.claim(mail, 2)
    result = f'"{"x" * 9 * MB}"'

    with driver.together():
        tickets = [driver.submit_act(Verb.COMPLETE, m, result=result) for m in both]

    assert [answer.state for ticket in tickets for answer in ticket.result(WAIT_S)] == ["done"] * 2


def test_eight_nodes_do_not_get_stuck_and_keep_every_group_in_order(open_one):
    drivers: list[StoreDriver] = [open_one() for _ in range(NODES)]
    orders = drivers[0].queue(ordering="group", lease_ms=DAY)
    done: dict[str, list[int]] = {}
    lock = threading.Lock()

    def send(driver: StoreDriver, node: int) -> None:
        for n in range(EACH):
            driver.send(orders, group=f"{node % GROUPS}", kind=f"{node}:{n}")

    def finish(driver: StoreDriver) -> None:
        while sum(map(len, done.values())) < NODES * EACH:
            for m in driver.claim(orders, 5):
                sender, _, n = str(m.kind).partition(":")
                with lock:
                    done.setdefault(sender, []).append(int(n))
                driver.complete(m)

    work = [lambda i=i: send(drivers[i], i) for i in range(NODES)]
    work += [lambda d=d: finish(d) for d in drivers]
    at_once(*work)

    assert done == {str(node): list(range(EACH)) for node in range(NODES)}
    check_counters(drivers[0])


def test_a_send_on_one_node_wakes_the_others(drivers):
    mail = drivers[0].queue()
    woken: Counter[int] = Counter()
    is_woken = threading.Event()

    def listen(hints) -> None:
        woken.update(hints)
        if mail.queue_no in hints:
            is_woken.set()

    drivers[1].store.listen(listen)
    assert drivers[1].store.wakeups.is_listening.wait(WAIT_S)

    drivers[0].send(mail)

    assert is_woken.wait(WAIT_S)
    assert woken[mail.queue_no] == 1
