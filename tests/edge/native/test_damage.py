"""A damaged page of the store: one queue is rejected permanently, the others are served."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest

from penstock.api.overview import Readiness
from penstock.client.remote.server import Remote
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import MakeServer
from tests.store.damage.stores import FILE, PAGE, ask, overwrite, page_of
from tests.support.waiting import eventually

COUNT = 30


@pytest.fixture
def api(make_server: MakeServer, tmp_path: Path) -> Api:
    """A client of a server whose store has lost a page with bodies of the queue `broken`."""
    first = make_server()
    before = Api(first.url)
    for queue in ("broken", "sound"):
        ok(before.call("PUT", f"/v1/queues/{queue}", {}))
        before.send_many(queue, ["x" * 1_000] * COUNT)
    before.close()
    first.stop()
    store = tmp_path / "data" / FILE
    ask(store, "PRAGMA wal_checkpoint(TRUNCATE)")  # so that pages are read from the file
    largest = (
        "SELECT name FROM dbstat WHERE name LIKE 'body_%' GROUP BY name ORDER BY count(*) DESC"
    )
    table = ask(store, largest)[0][0]
    page = page_of(store, table, 3)
    overwrite(store, (page - 1) * PAGE + 512, random.Random(1).randbytes(512))
    return Api(make_server().url)


def test_only_the_queue_that_needs_the_page_is_refused_and_waiting_is_not_suggested(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    assert ok(api.call("GET", "/readyz")) == {"status": "ready"}

    with caplog.at_level(logging.ERROR, "penstock.store"):
        for _ in range(3):
            refused = api.call("POST", "/v1/queues/broken/claims", {"limit": COUNT})
            assert_refused(refused, 503, "store_damaged")
            assert "Retrying does not help" in refused.json()["error"]["message"]
        eventually(lambda: ok(api.call("GET", "/v1/problems"))["damage"]["pages"])

    assert len(api.claim("sound", limit=COUNT)) == COUNT
    assert api.send("sound", "and on")
    [page] = ok(api.call("GET", "/v1/problems"))["damage"]["pages"]
    assert page["table"].startswith("body_")
    assert page["queues"] == ["broken"]
    lines = [record.getMessage() for record in caplog.records]
    assert sum(f"page {page['page']} " in line for line in lines) == 1, lines
    assert len(lines) == 2, "the first request that met it, and the page"


def test_the_server_stays_ready_for_the_others_and_says_that_it_is_degraded(api: Api) -> None:
    api.call("POST", "/v1/queues/broken/claims", {"limit": COUNT})

    readiness = ok(api.call("GET", "/readyz"))

    assert readiness["status"] == "degraded"
    assert "/v1/problems" in readiness["reason"]
    eventually(lambda: ok(api.call("GET", "/v1/problems"))["damage"]["pages"])
    assert "\npenstock_store_damaged_pages 1\n" in api.call("GET", "/metrics").text
    with Remote(str(api.http.base_url)) as remote:  # as `penstock doctor` asks
        assert remote.is_ready()
        assert remote.readiness() == Readiness(**readiness)
