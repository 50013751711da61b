"""End to end: from a push to the endpoint and back, over HTTP only, as gateleen is operated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.wiring.broker import migrate
from tests.edge.api import Api
from tests.edge.conftest import BACKENDS, some_settings
from tests.edge.gateleen.conftest import BREAKER, CIRCUITS, RULES, push
from tests.edge.live import LiveServer
from tests.edge.native.test_metrics import scrape
from tests.support.http_backend import HttpBackend
from tests.support.waiting import eventually

QUEUES = [f"orders-{number}" for number in range(5)]
PATTERN = "/shop/(.*)"
STATUS = f"{CIRCUITS}{circuit_hash(PATTERN)}/status"
PATIENCE_S = 60.0  # each tick of a duty may take some time
OFTEN = {"enabled": True, "interval": 50}
QUICK = {
    "circuitCheckEnabled": True,
    "statisticsUpdateEnabled": True,
    "errorThresholdPercentage": 60,
    "entriesMaxAgeMS": 60_000,
    "minQueueSampleCount": 3,
    "maxQueueSampleCount": 100,
    "openToHalfOpen": OFTEN,
    "unlockQueues": OFTEN,
    "unlockSampleQueues": OFTEN,
}


@pytest.fixture
def shop() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


@pytest.fixture(params=BACKENDS)
def live(request: pytest.FixtureRequest, tmp_path: Path, shop: HttpBackend) -> Iterator[Api]:
    """A server that pushes; its clock runs."""
    settings: dict[str, Any] = {"push": {"retry_ms": 20}}
    if request.param == "postgres":
        settings["store"] = {"url": request.getfixturevalue("postgres_url")}
    chosen = some_settings(tmp_path / "data", **settings)
    migrate(chosen)
    with ExitStack() as stack:
        server = stack.enter_context(LiveServer(chosen))
        api = stack.enter_context(closing(Api(server.url)))
        rules = {PATTERN: {"url": f"{shop.url}/v2/$1", "headers": {"x-token": "t"}}}
        assert api.call("PUT", RULES, rules).status_code == 200
        yield api


def test_a_queued_request_arrives_as_it_came(live: Api, shop: HttpBackend) -> None:
    headers = {"Content-Type": "application/x-odd", "X-Rp-Unique_Id": "17"}

    answer = push(live, "/shop/a%2Fb?c=1", "q", method="PUT", content=b"\x00\xff", headers=headers)

    [seen] = shop.wait_for(1)
    assert (seen.method, seen.target, seen.payload) == ("PUT", "/v2/a%2Fb?c=1", b"\x00\xff")
    for name, text in (
        ("content-type", "application/x-odd"),
        ("x-rp-unique_id", "17"),
        ("x-originally-queued", "true"),
        ("x-token", "t"),
        ("x-queue", None),
    ):
        assert seen.header(name) == text
    message_id = answer.headers["x-message-id"]
    [ending] = eventually(lambda: live.get("/v1/history", entity_id="17")["endings"])
    assert (ending["id"], ending["outcome"]) == (message_id, "done")


def test_an_outage_opens_the_circuit_and_loses_nothing(live: Api, shop: HttpBackend) -> None:
    assert live.call("PUT", BREAKER, QUICK).status_code == 200
    shop.answer(503)

    for number in range(3):
        for queue in QUEUES:
            assert push(live, f"/shop/{queue}/{number}", queue).status_code == 202
    eventually(lambda: live.get(CIRCUITS))
    eventually(lambda: live.get(STATUS)["status"] != "closed")
    eventually(lambda: any("held_by" in live.queue(queue) for queue in QUEUES))
    shop.answer(200)

    eventually(lambda: done(live) == 15, within_s=PATIENCE_S)
    eventually(lambda: live.get(STATUS) == {"status": "closed"})
    for queue in QUEUES:
        arrived = [target for target in shop.targets if f"/{queue}/" in target]
        assert arrived == sorted(arrived)  # in order, however often each was retried
    eventually(lambda: delivered(live, "success") == 15)  # recorded after it is done
    assert delivered(live, "failure") >= 3
    assert scrape(live).value("penstock_circuit_state", circuit=circuit_hash(PATTERN)) == 0


def delivered(api: Api, outcome: str) -> float:
    return scrape(api).value("penstock_deliveries_total", route=PATTERN, outcome=outcome)


def done(api: Api) -> int:
    return sum(int(api.queue(queue)["totals"]["done"]) for queue in QUEUES)
