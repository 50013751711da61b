"""A flow that is created again with the same dedup key is the first one."""

from __future__ import annotations

import pytest

from penstock.domain.errors import QueueFull
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.plan import FlowKey
from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Queue
from tests.store import flows
from tests.store.driver import StoreDriver
from tests.store.flows import a_member

KEY = FlowKey("2031-01-01", window_ms=10 * MINUTE)


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue()


def create(driver: StoreDriver, mail: Queue, key: FlowKey, name: str = "nightly") -> Flow:
    return flows.create(driver, a_member(mail, "a"), name=name, key=key)


def end_all(driver: StoreDriver, mail: Queue) -> None:
    for message in driver.claim(mail, 10):
        driver.act(Verb.COMPLETE, message)


def test_a_key_is_taken_until_its_flow_has_ended(driver: StoreDriver, mail: Queue) -> None:
    first = create(driver, mail, KEY)
    driver.clock.advance(minutes=60)

    assert create(driver, mail, KEY).id == first.id
    assert driver.counts(mail).ready == 1

    end_all(driver, mail)
    assert create(driver, mail, KEY).id != first.id
    assert driver.counts(mail).ready == 1


def test_a_key_is_taken_for_its_window_although_its_flow_has_ended(
    driver: StoreDriver, mail: Queue
) -> None:
    first = create(driver, mail, KEY)
    end_all(driver, mail)

    driver.clock.advance(minutes=9)
    assert create(driver, mail, KEY).id == first.id
    driver.clock.advance(minutes=1)
    assert create(driver, mail, KEY).id != first.id


def test_a_key_counts_for_flows_of_the_same_name(driver: StoreDriver, mail: Queue) -> None:
    made = {
        create(driver, mail, KEY).id,
        create(driver, mail, KEY, "weekly").id,
        create(driver, mail, FlowKey("2031-01-02")).id,
    }

    assert len(made) == 3


def test_a_key_is_free_once_its_flow_is_forgotten(driver: StoreDriver, mail: Queue) -> None:
    first = create(driver, mail, FlowKey("once", window_ms=300 * 24 * 60 * MINUTE))
    end_all(driver, mail)
    later = driver.now + MINUTE
    while driver.write(lambda s: s.flows.forget(before_at=later, limit=10)):
        pass

    assert create(driver, mail, FlowKey("once")).id != first.id


def test_a_flow_that_was_rejected_takes_no_key(driver: StoreDriver) -> None:
    full = driver.queue("full", max_messages=1)
    create(driver, full, KEY)
    with pytest.raises(QueueFull):
        create(driver, full, FlowKey("2031-01-02"))
    end_all(driver, full)

    assert create(driver, full, FlowKey("2031-01-02")).remaining == 1
