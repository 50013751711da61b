"""While the store fails, the process runs, reports that it cannot work, and rejects requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.api import Api, assert_refused, ok
from tests.faults.scenario import on_faulty_disk
from tests.faults.server import Server
from tests.support.waiting import eventually


@pytest.fixture
def server_on_a_faulty_disk(tmp_path: Path) -> Iterator[Server]:
    options = on_faulty_disk(tmp_path / "data")
    with Server(tmp_path / "data", tmp_path / "log", options=options) as server:
        server.start()
        yield server


@pytest.mark.parametrize("trouble", ["is_full", "writes_fail"])
def test_while_nothing_can_be_written_it_is_alive_but_not_ready(
    server_on_a_faulty_disk: Server, trouble: str
) -> None:
    server = server_on_a_faulty_disk
    api = Api(f"http://127.0.0.1:{server.port}")
    queue = api.make_queue()
    api.send(queue)

    server.steer(set={trouble: True})

    # Requests that change nothing may still be answered, but not wrongly.
    eventually(lambda: api.call("GET", "/readyz").status_code == 503)
    assert_refused(api.call("GET", "/readyz"), 503, "store_unavailable")
    assert api.call("GET", "/healthz").status_code == 200
    for path, body in (("messages", {"body": 1}), ("claims", {}), ("pause", None)):
        refused = api.call("POST", f"/v1/queues/{queue}/{path}", body)
        assert_refused(refused, 503, "store_unavailable")

    server.steer(set={trouble: False})
    eventually(lambda: api.call("GET", "/readyz").status_code == 200)
    assert api.counts(queue) == {"ready": 1}
    assert ok(api.call("POST", f"/v1/queues/{queue}/messages", {"body": 2}))["id"]
