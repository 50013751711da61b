"""An outage behind a gateway: the circuit opens, queues are held, and all arrives in order.

Only servers push; the story is played on a server with each store.
"""

from __future__ import annotations

from itertools import groupby

from penstock.domain.circuit.circuit import circuit_hash
from tests.stories.stage import Stage
from tests.support.private import free_port

PATTERN = "/shop/(.*)"
STATUS = f"/queuecircuitbreaker/circuit/{circuit_hash(PATTERN)}/status"
OFTEN = {"enabled": True, "interval": 100}
BREAKER = {
    "circuitCheckEnabled": True,
    "statisticsUpdateEnabled": True,
    "errorThresholdPercentage": 60,
    "entriesMaxAgeMS": 2_000,
    "minQueueSampleCount": 3,
    "maxQueueSampleCount": 100,
    "openToHalfOpen": OFTEN,
    "unlockQueues": OFTEN,
    "unlockSampleQueues": OFTEN,
}
QUEUES, COUNT = 5, 12


def test_requests_arrive_in_order_through_an_outage_of_backend_and_gateway(
    embedded_stage: Stage,
) -> None:
    stage, port = embedded_stage, str(free_port())
    stage.serve(push_retry_ms="100ms", push_lease_ms="2s")
    rules = {PATTERN: {"url": f"http://127.0.0.1:{port}/$1"}}
    for path, document in (("routing/rules", rules), ("circuitbreaker", BREAKER)):
        assert stage.api.call("PUT", f"/admin/v1/{path}", document).status_code == 200
    backend = stage.run("tests.stories.gateway", "backend", port)
    sender = stage.run("tests.stories.gateway", "send", str(QUEUES), str(COUNT))

    stage.until(lambda: len(stage.lines()) >= QUEUES)
    backend.kill()
    stage.until(lambda: stage.api.get(STATUS)["status"] != "closed")
    stage.until(lambda: any("held_by" in stage.api.queue(f"shop-{n}") for n in range(QUEUES)))
    stage.kill_server()
    stage.server.start()
    assert sender.wait() == 0
    stage.run("tests.stories.gateway", "backend", port)
    expected = {f"shop-{n}": {"done": COUNT} for n in range(QUEUES)}
    stage.until(lambda: {name: stage.totals(name) for name in expected} == expected)

    for queue in expected:
        arrived = [path for path in stage.lines() if path.startswith(f"/{queue}/")]
        # A request whose outcome was lost with the gateway arrives again, right after itself.
        assert [path for path, _ in groupby(arrived)] == [f"/{queue}/{n}" for n in range(COUNT)]
    stage.until(lambda: stage.api.get(STATUS) == {"status": "closed"})
