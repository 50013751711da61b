"""A crash of PostgreSQL forgets claims of the last moment: their commits do not wait for its disk.

Then two holders have the same message under the same lease number.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.domain.errors import LeaseLost, StoreUnavailable
from penstock.domain.limits import SECOND
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.ports.store import Acted
from tests.store.counter_checks import check_counters
from tests.store.postgres.conftest import PostgresDriver
from tests.store.postgres.helpers import until
from tests.support.postgres import PostgresCluster


@pytest.fixture
def crashes(postgres_cluster: PostgresCluster) -> Iterator[PostgresCluster]:
    """A server that writes commits to its log only when one of them waits for that."""
    postgres_cluster.set("wal_writer_delay", "10s")
    yield postgres_cluster
    postgres_cluster.start()
    postgres_cluster.set("wal_writer_delay", "200ms")


def claim_and_forget(driver: PostgresDriver, crashes: PostgresCluster) -> Message:
    mail = driver.queue(lease_ms=600 * SECOND)
    driver.send(mail)
    [message] = driver.claim(mail)
    crashes.kill()
    crashes.start()
    driver.clock.advance(ms=SECOND)
    until(lambda: driver.find(message.id), StoreUnavailable)
    assert driver.get(message.id).state is State.READY, "the claim was not forgotten"
    assert driver.get(message.id).lease_no == 0
    return message


def test_the_holder_of_a_forgotten_lease_is_rejected(driver, crashes):
    message = claim_and_forget(driver, crashes)

    answers = [driver.act(verb, message) for verb in Verb]

    assert [type(answer) for answer in answers] == [LeaseLost] * len(Verb)
    assert driver.get(message.id).state is State.READY


def test_and_after_the_next_claim_although_that_has_the_same_lease_number(driver, crashes):
    first = claim_and_forget(driver, crashes)
    [second] = driver.claim(driver.queues[0])
    assert (second.id, second.lease_no) == (first.id, first.lease_no)

    answers = [driver.act(verb, first) for verb in Verb]

    assert [type(answer) for answer in answers] == [LeaseLost] * len(Verb)
    assert isinstance(driver.act(Verb.COMPLETE, second), Acted)
    check_counters(driver)
