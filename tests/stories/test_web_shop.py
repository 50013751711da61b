"""A web shop whose front, workers and server are killed in the middle of the day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.stories.environment import StoryEnvironment
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
    environment: StoryEnvironment, partner: HttpBackend
) -> None:
    environment.serve(push_retry_ms="200ms", push_lease_ms="2s")
    rules = {"/partner/(.*)": {"url": f"{partner.url}/$1"}}
    assert environment.api.call("PUT", RULES, rules).status_code == 200
    worker = environment.work(APP)
    front = environment.run("tests.stories.web_shop", str(ORDERS))

    environment.until(lambda: len(environment.lines()) >= ORDERS)
    front.kill()
    worker.kill()
    environment.kill_server()
    fired_before = environment.lines().count("stocktaking")
    environment.server.start()
    worker = environment.work(APP)
    assert environment.run("tests.stories.web_shop", str(ORDERS)).wait() == 0
    expected: dict[str, dict[str, int]] = {name: {"done": ORDERS} for name in (*JOBS, "partner")}
    expected |= {f"orders.{name}": {"done": ORDERS} for name in ("fulfil", "audit")}
    environment.until(lambda: {name: environment.totals(name) for name in expected} == expected)
    environment.until(lambda: environment.lines().count("stocktaking") > fired_before)

    assert worker.end() == 0
    did = Counter(environment.lines())
    del did["stocktaking"]
    assert set(did) == {
        f"{what} {n}" for what in ("stock", "mail", "invoice", "audit") for n in range(ORDERS)
    }
    assert max(did.values()) <= 2, "once, and once more what a killed worker had not completed"
    deliveries = Counter(partner.targets)
    assert set(deliveries) == {f"/invoices/{n}" for n in range(ORDERS)}
    assert max(deliveries.values()) <= 2
