"""A web shop whose front, workers and server are killed in the middle of the day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.stories.stage import Stage
from tests.support.http_backend import HttpBackend

APP = "tests.stories.web_shop:app"
ORDERS = 30
RULES = "/admin/v1/routing/rules"
JOBS = ("stock", "mail", "invoices")


@pytest.fixture
def partner() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


def test_every_order_is_fulfilled_whatever_is_killed_meanwhile(
    stage: Stage, partner: HttpBackend
) -> None:
    stage.serve(push_retry_ms="200ms", push_lease_ms="2s")
    rules = {"/partner/(.*)": {"url": f"{partner.url}/$1"}}
    assert stage.api.call("PUT", RULES, rules).status_code == 200
    worker = stage.work(APP)
    front = stage.run("tests.stories.web_shop", str(ORDERS))

    stage.until(lambda: len(stage.lines()) >= ORDERS)
    front.kill()
    worker.kill()
    stage.kill_server()
    fired_before = stage.lines().count("stocktaking")
    stage.server.start()
    worker = stage.work(APP)
    assert stage.run("tests.stories.web_shop", str(ORDERS)).wait() == 0
    expected: dict[str, dict[str, int]] = {name: {"done": ORDERS} for name in (*JOBS, "partner")}
    expected |= {f"orders.{name}": {"done": ORDERS} for name in ("fulfil", "audit")}
    stage.until(lambda: {name: stage.totals(name) for name in expected} == expected)
    stage.until(lambda: stage.lines().count("stocktaking") > fired_before)

    assert worker.end() == 0
    did = Counter(stage.lines())
    del did["stocktaking"]
    assert set(did) == {
        f"{what} {n}" for what in ("stock", "mail", "invoice", "audit") for n in range(ORDERS)
    }
    assert max(did.values()) <= 2, "once, and once more what a killed worker had not completed"
    deliveries = Counter(partner.targets)
    assert set(deliveries) == {f"/invoices/{n}" for n in range(ORDERS)}
    assert max(deliveries.values()) <= 2
