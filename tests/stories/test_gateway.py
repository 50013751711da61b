"""An outage behind a gateway: the circuit opens, queues are held, and all arrives in order.

Only servers push; the story is played on a server with each store.
"""

from __future__ import annotations

from itertools import groupby

from penstock.domain.circuit.circuit import circuit_hash
from tests.stories.environment import StoryEnvironment
from tests.support.private_servers import free_port

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
    embedded_environment: StoryEnvironment,
) -> None:
    environment, port = embedded_environment, str(free_port())
    environment.serve(push_retry_ms="100ms", push_lease_ms="2s")
    rules = {PATTERN: {"url": f"http://127.0.0.1:{port}/$1"}}
    for path, document in (("routing/rules", rules), ("circuitbreaker", BREAKER)):
        assert environment.api.call("PUT", f"/admin/v1/{path}", document).status_code == 200
    backend = environment.run("tests.stories.gateway", "backend", port)
    sender = environment.run("tests.stories.gateway", "send", str(QUEUES), str(COUNT))

    environment.until(lambda: len(environment.lines()) >= QUEUES)
    backend.kill()
    environment.until(lambda: environment.api.get(STATUS)["status"] != "closed")
    environment.until(
        lambda: any("held_by" in environment.api.queue(f"shop-{n}") for n in range(QUEUES))
    )
    environment.kill_server()
    environment.server.start()
    assert sender.wait() == 0
    environment.run("tests.stories.gateway", "backend", port)
    expected = {f"shop-{n}": {"done": COUNT} for n in range(QUEUES)}
    environment.until(lambda: {name: environment.totals(name) for name in expected} == expected)

    for queue in expected:
        arrived = [path for path in environment.lines() if path.startswith(f"/{queue}/")]
        # A request whose outcome was lost with the gateway arrives again, right after itself.
        assert [path for path, _ in groupby(arrived)] == [f"/{queue}/{n}" for n in range(COUNT)]
    environment.until(lambda: environment.api.get(STATUS) == {"status": "closed"})
