"""Liveness, readiness and stats."""

from __future__ import annotations

import pytest

from penstock import __version__
from penstock.runtime.duties import Expirer, Reaper
from tests.edge.api import Api
from tests.edge.live import LiveServer

pytestmark = pytest.mark.both_stores


def test_a_running_process_reports_that_it_is_healthy(api: Api) -> None:
    assert api.get("/healthz") == {"status": "ok", "version": __version__}


def test_a_server_whose_store_accepts_writes_is_ready(api: Api) -> None:
    assert api.get("/readyz") == {"status": "ready"}


def test_stats_count_over_all_queues(api: Api, server: LiveServer) -> None:
    _tidy_up(server)
    before = api.get("/v1/stats")
    first, second = api.make_queue(), api.make_queue()
    api.send(first)
    api.send(second, delay_ms=60_000)
    api.finish(second)

    after = api.get("/v1/stats")

    assert after["backend"] == server.backend
    assert after["version"] == __version__
    assert after["queues"] == before["queues"] + 2
    assert _grown(before["counts"], after["counts"]) == {"ready": 1, "waiting": 1}
    assert _grown(before["totals"], after["totals"]) == {"sent": 3, "claimed": 1, "done": 1}


def test_stats_show_how_many_claims_wait(api: Api) -> None:
    assert api.get("/v1/stats")["waiting_claims"] == 0


def _tidy_up(server: LiveServer) -> None:
    """Leftovers of other tests must not become due while we count."""
    now = server.clock.now()
    for duty in (Reaper, Expirer):
        duty(server.broker.store, every_ms=1).tick(now)


def _grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: n - before[name] for name, n in after.items() if n != before[name]}
