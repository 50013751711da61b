"""Steps and signals in the caller's own transaction: they count if and only if it commits."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Penstock, current, wait_event_sync
from penstock.api.jobs import signals, steps
from penstock.domain.errors import InvalidRequest, LeaseLost, SignalNotFound
from penstock.domain.message.lease import Verb
from tests.client.jobs import test_transactions
from tests.edge.api import a_name

tx = test_transactions.tx
pytestmark = pytest.mark.environments("own transaction", "sync connection")


def names(app: Any, job_id: str) -> list[str]:
    return [one.name for one in app.backend.channel.request(steps.OF_MESSAGE, id=job_id).steps]


def test_a_step_is_recorded_exactly_if_the_transaction_is_committed(app, queue, driver, tx):
    calls: list[int] = []

    def charge(cents: int) -> int:
        calls.append(cents)
        return cents

    @app.job(queue=queue, backoff="0s")
    def order() -> None:
        assert current().steps.using(tx=tx).step_sync("charge", charge, 5) == 5
        if len(calls) < 2:
            tx.rollback()
            raise RuntimeError("broken")
        tx.commit()
        assert current().steps.step_sync("ship", charge, 7) == 7

    sent = order.enqueue()
    assert [act.verb for act in driver.run_due()] == [Verb.FAIL]
    assert names(app, sent.id) == []

    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert names(app, sent.id) == ["charge", "ship"]
    assert calls == [5, 5, 7]


def test_a_lost_lease_cannot_record_in_a_transaction_either(app, queue, driver, tx, clock):
    @app.job(queue=queue)
    def order() -> None:
        clock.advance(minutes=5)
        driver.claim()
        with pytest.raises(LeaseLost):
            current().steps.using(tx=tx).step_sync("charge", dict)
        tx.rollback()

    sent = order.enqueue()
    driver.act_of(driver.claim()[0])

    assert names(app, sent.id) == []


def test_a_signal_is_sent_exactly_if_the_transaction_is_committed(app, queue, driver, tx):
    name = a_name("approved")

    @app.job(queue=queue)
    def order() -> None:
        assert wait_event_sync(name) == 2

    order.enqueue()
    driver.run_due()

    assert app.signal(name, 1, tx=tx).ended_waits == 1
    tx.rollback()
    assert driver.claim() == []
    with pytest.raises(SignalNotFound):
        app.backend.channel.request(signals.GET, signal=name)

    app.signal(name, 2, tx=tx)
    tx.commit()
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]


@pytest.mark.no_store("server")
def test_a_server_takes_neither_in_a_transaction(job_server):
    with Penstock(job_server.url) as remote, pytest.raises(InvalidRequest):
        remote.signal("approved", tx=object())
