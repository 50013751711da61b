"""A node that is killed while an endpoint works: the same request is sent again."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from penstock.domain.delivery.delivery import GROUP, KIND, Delivery, queue_settings, to_body
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import Queue
from penstock.settings import Settings
from penstock.settings.values import StoreSettings
from penstock.wiring.broker import Broker, migrate, open_broker
from tests.edge.process import ServerProcess
from tests.support.http_backend import HttpBackend

SECRET = "whsec_" + "c2Vj" * 8
# As short as it gets: a lease of a few seconds, and a reaper that looks often.
QUICK = {"push_lease_ms": 5_000, "push_scan_ms": 100, "queues_reap_interval_ms": 20}


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_delivery_of_a_killed_node_is_sent_again_with_the_same_id_and_in_order(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
):
    url = request.getfixturevalue("postgres_url") if backend == "postgres" else None
    data = tmp_path / "data"
    settings = Settings(data=str(data), store=StoreSettings(url=url))
    with HttpBackend() as shop:
        prepare(settings, shop)
        shop.hold()
        with ServerProcess(data, QUICK, store=url) as first:
            shop.wait_for(1)
            first.end(signal.SIGKILL)
        shop.release()
        with ServerProcess(data, QUICK, store=url):
            shop.wait_for(4)

        assert shop.targets == ["/0", "/0", "/1", "/2"]
        ids = [seen.header("webhook-id") for seen in shop.seen]
        assert ids[0] == ids[1]
        assert len(set(ids)) == 3


def prepare(settings: Settings, shop: HttpBackend) -> None:
    """Rules and three deliveries, before anybody pushes."""
    migrate(settings)
    broker = open_broker(settings)
    try:
        rules = {"/(.*)": {"url": f"{shop.url}/$1", "signingSecret": SECRET}}
        broker.routes.put(json.dumps(rules)).result()
        queue = broker.queues.put("out", queue_settings()).result().view.queue
        for number in range(3):
            send(broker, queue, f"/{number}")
    finally:
        broker.close()


def send(broker: Broker, queue: Queue, uri: str) -> None:
    delivery = Delivery(method="POST", uri=uri, payload=b"{}", queued_at=broker.clock.now())
    draft = Draft(body=to_body(delivery), group=GROUP, kind=KIND, entity_id=uri)
    broker.messages.send([broker.messages.draft(queue, draft)]).result()
