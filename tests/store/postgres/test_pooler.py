"""PgBouncer between nodes and the server, in transaction mode.

Prepared statements and notifications belong to a connection, and the next transaction may get
another one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.store.postgres.store import open_postgres
from tests.clocks import ManualClock
from tests.store.counter_checks import check_counters
from tests.store.postgres.conftest import PostgresDriver
from tests.store.postgres.helpers import at_once, until
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import PostgresCluster


@pytest.fixture(scope="module")
def pooler(postgres_cluster: PostgresCluster) -> Iterator[PgBouncer]:
    with PgBouncer(postgres_cluster.port) as running:
        yield running


@pytest.fixture
def pooled(pooler: PgBouncer, postgres_url: str, clock: ManualClock) -> Iterator[list]:
    """Two nodes."""
    url = pooler.url(postgres_url.rpartition("/")[2])
    stores = [open_postgres(url, lanes=2) for _ in range(2)]
    yield [PostgresDriver(store, clock) for store in stores]
    for store in stores:
        store.close()
    pooler.stop()  # it would keep connections to the database, which is dropped
    pooler.start()


def test_nodes_send_claim_and_complete_through_a_pooler(pooled):
    first, second = pooled
    mail = first.queue()

    def work(driver: PostgresDriver) -> None:
        for _ in range(10):
            driver.send_many(mail, 5)
            for message in driver.claim(mail, 5):
                driver.complete(message)

    at_once(*[lambda d=d: work(d) for d in (first, second, first, second)])

    for message in first.claim(mail, 1_000):
        second.complete(message)
    assert first.counts(mail).done_total == 200
    check_counters(first)


def test_nodes_recover_when_the_pooler_restarts(pooled, pooler):
    driver = pooled[0]
    mail = driver.queue()
    sent = driver.send(mail)

    pooler.stop()
    with pytest.raises(StoreUnavailable):
        driver.send(mail)
    pooler.start()

    until(lambda: driver.counts(mail), StoreUnavailable)
    until(lambda: driver.write(lambda s: None), StoreUnavailable)
    assert sent in driver.claim_ids(mail)
