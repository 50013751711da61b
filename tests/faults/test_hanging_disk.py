"""A disk that hangs: no request waits for ever, health checks work, and the server can exit."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.edge.api import Api, assert_refused, ok
from tests.faults.scenario import on_faulty_disk
from tests.faults.server import Server
from tests.support.waiting import eventually

END_S = 60.0
MAY_BE_STORED = "may have been executed"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("PENSTOCK_STORE_REQUEST_TIMEOUT_MS", "3000")
    monkeypatch.setenv("PENSTOCK_STORE_PATIENCE_MS", "1000")
    options = on_faulty_disk(tmp_path / "data")
    with Server(tmp_path / "data", tmp_path / "log", options=options) as server:
        server.start()
        yield server


@pytest.fixture
def api(server: Server) -> Api:
    return Api(f"http://127.0.0.1:{server.port}")


def test_while_the_disk_hangs_requests_are_refused_in_time_and_then_it_recovers(
    server: Server, api: Api
) -> None:
    queue = api.make_queue()
    api.send(queue)

    server.steer(set={"is_hanging": True})

    # A heartbeat of the broker may have reached the disk first; then the first send waits too.
    sends = [
        api.call("POST", f"/v1/queues/{queue}/messages", {"body": body}) for body in ("a", "b")
    ]
    for refused in sends:
        assert_refused(refused, 503, "store_unavailable")
    assert MAY_BE_STORED not in sends[1].text
    assert int(sends[1].headers["retry-after"]) > 0
    assert_refused(api.call("GET", "/readyz"), 503, "store_unavailable")
    assert_refused(api.call("POST", f"/v1/queues/{queue}/claims", {}), 503, "store_unavailable")
    assert api.call("GET", "/metrics").status_code == 200
    health = eventually(lambda: _failing(api))
    assert "writer" in [part["name"] for part in health["parts"]]

    server.steer(set={"is_hanging": False})

    eventually(lambda: api.call("GET", "/readyz").status_code == 200)
    eventually(lambda: api.call("GET", "/healthz").status_code == 200)
    assert ok(api.call("POST", f"/v1/queues/{queue}/messages", {"body": "after"}))["id"]
    begun = sum(MAY_BE_STORED in refused.text for refused in sends)
    assert api.counts(queue) == {"ready": 2 + begun}, (
        "requests that were not started are not stored"
    )


def test_a_server_whose_disk_hangs_exits_when_terminated(server: Server, api: Api) -> None:
    queue = api.make_queue()
    server.steer(set={"is_hanging": True})

    with ThreadPoolExecutor(1) as pool:
        path = f"/v1/queues/{queue}/messages"
        waiting = pool.submit(lambda: api.call("POST", path, {"body": 1}))
        eventually(lambda: api.call("GET", "/readyz").status_code == 503)
        code, _ = server.terminate(within_s=END_S)

        assert code == 0, server.where_it_is()
        assert_refused(waiting.result(END_S), 503, "store_unavailable")


def _failing(api: Api) -> Any:
    answer = api.call("GET", "/healthz")
    return answer.json() if answer.status_code == 503 else None
