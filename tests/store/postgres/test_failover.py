"""The primary is killed, and a streaming standby takes over.

`make drill` runs the same with Patroni, etcd, HAProxy and PgBouncer (tests/drill).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Acted, Sent
from penstock.store.postgres.store import PostgresStore, migrate, open_postgres
from tests.clocks import ManualClock
from tests.factories import a_new_message
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S
from tests.store.postgres.conftest import PostgresDriver
from tests.support.postgres import PostgresCluster
from tests.support.waiting import eventually


class Sender(threading.Thread):
    """Sends one message after the other, whatever happens to the database."""

    def __init__(self, store: PostgresStore, queue: Queue) -> None:
        super().__init__(daemon=True)
        self._store = store
        self._queue = queue
        self.acknowledged: list[str] = []
        self.failures: list[PenstockError] = []
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            new = a_new_message(self._queue)
            try:
                [answer] = self._store.send([new]).result(WAIT_S)
            except StoreUnavailable as error:
                self.failures.append(error)
                threading.Event().wait(0.01)
            else:
                assert isinstance(answer, Sent)
                self.acknowledged.append(answer.id)

    def await_more(self, count: int = 20) -> None:
        wanted = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= wanted)


@pytest.fixture
def primary() -> Iterator[PostgresCluster]:
    with PostgresCluster(in_memory=True) as cluster:
        yield cluster


@pytest.fixture
def standby(primary: PostgresCluster) -> Iterator[PostgresCluster]:
    with PostgresCluster(in_memory=True, standby_of=primary) as cluster:
        primary.set("synchronous_standby_names", "*")
        eventually(lambda: is_synchronous(primary))
        yield cluster


def is_synchronous(primary: PostgresCluster) -> bool:
    with psycopg.connect(primary.url(), autocommit=True) as admin:
        rows = admin.execute("SELECT sync_state FROM pg_stat_replication").fetchall()
    return rows == [("sync",)]


def test_a_node_recovers_from_a_failover_and_nothing_acknowledged_is_lost(primary, standby):
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgresql://postgres@{hosts}/postgres?timeout_ms=2000"
    migrate(url)
    store = open_postgres(url, lanes=2)
    try:
        driver = PostgresDriver(store, ManualClock())
        mail = driver.queue()
        held = driver.send(mail)
        [message] = driver.claim(mail)
        sender = Sender(store, mail)
        sender.start()
        sender.await_more()  # and with them the claim reaches the standby

        primary.kill()
        standby.promote()
        sender.await_more()
        sender.is_over = True
        sender.join(WAIT_S)

        assert sender.failures
        assert isinstance(driver.act(Verb.COMPLETE, message), Acted)
        claimed = set(driver.claim_ids(mail, 100_000))
        assert set(sender.acknowledged) <= claimed
        assert held not in claimed
        check_counters(driver)
    finally:
        store.close()


def test_a_node_reads_and_writes_at_the_primary_whichever_host_comes_first(primary, standby):
    """A standby lags behind, and its clock is another."""
    migrate(primary.url())
    hosts = f"127.0.0.1:{standby.port},127.0.0.1:{primary.port}"
    store = open_postgres(f"postgresql://postgres@{hosts}/postgres", lanes=1)
    try:
        driver = PostgresDriver(store, ManualClock())
        driver.send(driver.queue())
        is_standby: Callable[..., list] = lambda s: s.db.rows("checks.is_standby")  # noqa: E731

        assert driver.read(is_standby) == [(0,)]
        assert driver.write(is_standby) == [(0,)]
    finally:
        store.close()
