"""An order service with every kind of message: each order is handled once, and nothing is left.

Played on SQLite, on PostgreSQL, and over HTTP; a server runs in each, for the programs that
speak HTTP and SQS and for the push to the carrier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Penstock
from tests.stories.database import numbers
from tests.stories.environment import StoryEnvironment
from tests.support.http_backend import Answer, Behaviour, HttpBackend, Seen

APP = "tests.stories.order_service:app"
SOLD = 8  # on the web site, half of them on an event loop
EACH = 2  # from the marketplace: in plain code, on an event loop, and by SQS
ALL = SOLD + 3 * EACH
PAID_AT_ONCE, POISONED = 1, 7
LEFT = (0, SOLD + 100)  # the transactions that were rolled back; 0 was placed later
EXPRESS = [number for number in range(SOLD) if number % 3 == 2]

WAITING = {
    "billing": {"ready": SOLD},
    "intake": {"ready": 2 * EACH},
    "legacy-orders": {"ready": EACH},
    "orders.accounts": {"ready": SOLD},
    "orders.mail": {"ready": SOLD},
    "packing": {"ready": SOLD},
}
ENDED = {
    "billing": {"done": ALL, "dead": 1},
    "billing-dead": {"cancelled": 1},  # redriven
    "carrier": {"done": ALL},
    "intake": {"done": 2 * EACH},
    "legacy-orders": {"done": EACH},
    "orders.accounts": {"done": ALL},
    "orders.mail": {"done": ALL},
    "packing": {"done": ALL},
    "reminders": {"done": ALL - 1, "cancelled": 1},
}


class Carrier(HttpBackend):
    """Fails at the first request for each parcel."""

    def __init__(self) -> None:
        super().__init__()
        self.behave = self._fail_first

    def _fail_first(self, seen: Seen) -> Behaviour:
        return Answer(503 if self.targets.count(seen.target) == 1 else 200)


@pytest.fixture
def carrier() -> Iterator[Carrier]:
    with Carrier() as backend:
        yield backend


def test_every_order_is_handled_once_wherever_it_comes_from_and_nothing_is_left(
    environment: StoryEnvironment, carrier: Carrier
) -> None:
    environment.serve(push_retry_ms="50ms")
    rules = {"/carrier/(.*)": {"url": f"{carrier.url}/$1"}}
    assert environment.api.call("PUT", "/v1/routes", {"rules": rules}).status_code == 200
    website = environment.run("tests.stories.order_service", str(SOLD))
    marketplace = environment.run("tests.stories.marketplace", str(SOLD), str(EACH))
    assert (website.wait(), marketplace.wait()) == (0, 0)
    assert totals(environment, WAITING) == WAITING

    worker = environment.work(APP, "--lease", "60s")
    with Penstock(environment.url) as operator:
        environment.until(lambda: environment.totals("billing-dead") == {"ready": 1})
        [poisoned] = operator.jobs.list(queue="billing-dead")
        (environment.folder / "fixed").touch()
        assert operator.jobs.redrive(queue="billing-dead") == 1
        environment.until(lambda: "report" in environment.lines())
        operator.recurring.remove("report")
        environment.until(lambda: totals(environment, ENDED) == ENDED)
        environment.until(lambda: set(environment.totals("reports")) == {"done"})
    assert worker.end() == 0

    reports = environment.totals("reports")["done"]
    assert Counter(environment.lines()) == Counter(
        [f"left {number}" for number in LEFT]
        + [f"{what} {number}" for what in ("bill", "mail") for number in range(ALL)]
        + [f"remind {number}" for number in range(ALL) if number != PAID_AT_ONCE]
        + ["report"] * reports
    )
    database = (
        environment.url
        if environment.url == environment.store
        else f"sqlite:///{environment.folder / 'orders.db'}"
    )
    for table in ("customer_order", "parcel", "ledger"):
        assert numbers(database, table) == list(range(ALL))
    assert Counter(carrier.targets) == {f"/parcels/{number}": 2 for number in range(ALL)}
    check_history(environment, poisoned.id)
    check_nothing_is_left(environment)


def check_history(environment: StoryEnvironment, poisoned: str) -> None:
    """Every message of every order has ended as it should, at its first attempt."""
    packed = {}
    for number in range(ALL):
        endings = environment.api.get("/v1/history", tag=f"order-{number}")["endings"]
        wanted = Counter(
            [("pack", "done"), ("bill", "done"), ("order.placed", "done"), ("order.placed", "done")]
            + [("payment.due", "cancelled" if number == PAID_AT_ONCE else "done")]
            + [("accept", "done")] * (SOLD <= number < SOLD + 2 * EACH)
            + [("bill", "dead")] * (number == POISONED)
        )
        assert Counter((one["kind"], one["outcome"]) for one in endings) == wanted, number
        done = [one for one in endings if one["outcome"] == "done"]
        assert {one["attempts"] for one in done} == {1}, number
        packed[number] = next(one["first_leased_at"] for one in done if one["kind"] == "pack")
    # Those that waited when the worker started: express ones were claimed before all others.
    others = [number for number in range(SOLD) if number not in EXPRESS]
    assert max(packed[one] for one in EXPRESS) <= min(packed[one] for one in others)

    past = environment.api.get(f"/v1/history/{poisoned}")
    endings = [(one["outcome"], one["attempts"]) for one in past["endings"]]  # newest first
    assert endings == [("done", 1), ("dead", 2)]
    # A busy worker releases what it cannot start yet; that is not an attempt.
    attempts = [one["outcome"] for one in past["attempts"] if one["outcome"] != "released"]
    assert attempts == ["failed", "failed"]
    for number in LEFT[1:]:
        assert environment.api.get("/v1/history", tag=f"order-{number}")["endings"] == []


def check_nothing_is_left(environment: StoryEnvironment) -> None:
    queues = environment.api.get("/v1/queues")["queues"]
    assert {queue["name"] for queue in queues} == {*ENDED, "reports"}
    for queue in queues:
        assert set(queue["counts"].values()) == {0}, queue["name"]
        ended = sum(queue["totals"][name] for name in ("done", "dead", "cancelled"))
        assert queue["totals"]["sent"] == ended, queue["name"]
    assert environment.api.get("/v1/recurring")["recurring"] == []
    assert environment.api.get("/v1/problems")["problems"] == []


def totals(environment: StoryEnvironment, queues: Any) -> dict[str, dict[str, int]]:
    return {name: environment.totals(name) for name in queues}
