"""Fleets in the native API, and KEDA's request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.scaling.fleet_status import DECISION, FleetStatus, FleetTrouble, NewFact
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Sample, combine
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.native.test_metrics import parse
from tests.factories import a_fleet_status


def keep(server: LiveServer, *statuses: FleetStatus, facts: tuple[NewFact, ...] = ()) -> None:
    server.broker.scaling.save_tick(statuses, facts, now=server.clock.now()).result()


def forget(server: LiveServer) -> None:
    names = [status.name for status in server.broker.scaling.all().result()]
    server.broker.scaling.save_tick([], gone=names, now=server.clock.now()).result()


@pytest.fixture(autouse=True)
def _no_fleets_left(server: LiveServer) -> Iterator[None]:
    yield
    forget(server)


def test_without_an_autoscaler_there_are_no_fleets(api: Api) -> None:
    assert api.get("/v1/scaling") == {"fleets": []}
    for path in ("/v1/scaling/mail", "/v1/scaling/mail/wanted", "/v1/scaling/mail/decisions"):
        assert_refused(api.call("GET", path), 404, "fleet_not_found")


def test_a_fleet_shows_its_readings_its_decision_and_the_reason(
    api: Api, server: LiveServer, clock: ManualClock
) -> None:
    trouble = FleetTrouble("source", "source_unavailable", "rabbit does not answer", clock.now())
    pressure = Pressure(memory_percent=71.5, disk_free_mb=300)
    keep(
        server,
        a_fleet_status(
            "mail", seen_at=clock.now(), troubles=(trouble,), pressure=pressure, level=1
        ),
    )

    [fleet] = api.get("/v1/scaling")["fleets"]

    assert fleet == api.get("/v1/scaling/mail")
    assert (fleet["name"], fleet["queue"], fleet["replicas_by"]) == ("mail", "mail", "processes")
    assert (fleet["min"], fleet["max"], fleet["wanted"], fleet["is_watched"]) == (0, 10, 6, True)
    assert fleet["replicas"] == {"running": 1, "starting": 0, "requested": 1}
    assert fleet["sample"]["ready"] == 100
    assert fleet["pressure"] == {"memory_percent": 71.5, "disk_free_mb": 300}
    assert fleet["pressure_level"] == 1
    assert (fleet["decision"]["change"], fleet["decision"]["reason"]) == (5, "backlog")
    assert fleet["decision"]["inputs"]["consume_rate"] == 1.0
    assert (fleet["last_change"]["change"], fleet["last_change"]["is_done"]) == (5, True)
    [trouble] = fleet["troubles"]
    assert (trouble["part"], trouble["code"]) == ("source", "source_unavailable")


def test_a_fleet_with_several_queues_lists_them_with_their_load(
    api: Api, server: LiveServer
) -> None:
    sample = combine({"mail": Sample(ready=3, oldest_ms=9), "post": Sample(ready=4)})
    keep(server, a_fleet_status("both", queue="mail", queues=("mail", "post"), sample=sample))

    fleet = api.get("/v1/scaling/both")

    assert (fleet["queue"], fleet["queues"]) == ("mail", ["mail", "post"])
    assert (fleet["sample"]["ready"], fleet["sample"]["oldest_ms"]) == (7, 9)
    loads = [(one["queue"], one["ready"], one["oldest_ms"]) for one in fleet["sample"]["queues"]]
    assert loads == [("mail", 3, 9), ("post", 4, None)]


def test_fleets_are_listed_by_name(api: Api, server: LiveServer) -> None:
    keep(server, a_fleet_status("post"), a_fleet_status("mail"))

    assert [one["name"] for one in api.get("/v1/scaling")["fleets"]] == ["mail", "post"]


def test_decisions_come_page_by_page_newest_first(
    api: Api, server: LiveServer, clock: ManualClock
) -> None:
    for number in range(3):
        keep(
            server, a_fleet_status("paged"), facts=(NewFact(DECISION, "paged", {"change": number}),)
        )
        clock.advance(seconds=10)

    first = api.get("/v1/scaling/paged/decisions", limit="2")
    rest = api.get("/v1/scaling/paged/decisions", limit="2", cursor=first["next"])

    changes = [one["decision"]["change"] for one in first["decisions"]]
    assert changes == [2, 1]
    assert rest["next"] is None
    assert [one["decision"]["change"] for one in rest["decisions"]] == [0]


def test_keda_gets_the_wanted_number_of_workers(
    api: Api, server: LiveServer, clock: ManualClock
) -> None:
    keep(server, a_fleet_status(seen_at=clock.now()))

    assert api.get("/v1/scaling/mail/wanted") == {"value": 6}


def test_keda_gets_no_outdated_number(api: Api, server: LiveServer, clock: ManualClock) -> None:
    keep(server, a_fleet_status(seen_at=clock.now()))

    clock.advance(seconds=90)
    assert api.get("/v1/scaling/mail/wanted") == {"value": 6}
    clock.advance(ms=1)

    assert_refused(api.call("GET", "/v1/scaling/mail/wanted"), 503, "fleet_not_watched")
    assert not api.get("/v1/scaling/mail")["is_watched"]


@pytest.mark.parametrize(
    "path", ["/v1/scaling/mail/decisions?limit=0", "/v1/scaling/mail/decisions?x=1"]
)
def test_an_invalid_query_is_rejected(api: Api, server: LiveServer, path: str) -> None:
    keep(server, a_fleet_status())

    assert_refused(api.call("GET", path), 400, "invalid_request")


def test_metrics_include_fleets(api: Api, server: LiveServer) -> None:
    keep(server, a_fleet_status("mail", group='e"u'))

    metrics = parse(api.call("GET", "/metrics").text)

    assert metrics.value("penstock_fleet_wanted", fleet="mail") == 6
    assert metrics.value("penstock_fleet_running", fleet="mail") == 1
    assert metrics.value("penstock_fleet_backlog", fleet="mail") == 100
    assert metrics.value("penstock_fleet_troubles", fleet="mail") == 0
    assert metrics.types["penstock_fleet_wanted"] == "gauge"


def test_metrics_of_a_fleet_of_which_nothing_is_known_are_left_out(
    api: Api, server: LiveServer
) -> None:
    keep(server, a_fleet_status("mail", sample=None, replicas=None))

    text = api.call("GET", "/metrics").text

    assert 'penstock_fleet_running{fleet="mail"' not in text
    assert 'penstock_fleet_wanted{fleet="mail"' in text


def test_a_key_for_some_queues_sees_their_fleets_only(
    server_with_keys: LiveServer, let_in: LetIn
) -> None:
    now = server_with_keys.clock.now()
    statuses: list[Any] = [
        a_fleet_status("mail", queue="mail-1", seen_at=now),
        a_fleet_status("bank", queue="bank-1", seen_at=now),
        a_fleet_status("rabbit", queue="mail-2", source="rabbit", seen_at=now),
        a_fleet_status("both", queue="mail-1", queues=("mail-1", "bank-1"), seen_at=now),
    ]
    keep(server_with_keys, *statuses)
    mailer, admin = let_in(Role.READ, queues=("mail-*",)), let_in(Role.READ)

    assert [one["name"] for one in mailer.get("/v1/scaling")["fleets"]] == ["mail"]
    assert len(admin.get("/v1/scaling")["fleets"]) == 4
    assert mailer.get("/v1/scaling/mail/wanted") == {"value": 6}
    for name in ("bank", "rabbit", "both"):
        for more in ("", "/wanted", "/decisions"):
            answer = mailer.call("GET", f"/v1/scaling/{name}{more}")
            assert_refused(answer, 404, "fleet_not_found")
    assert "penstock_fleet" not in mailer.call("GET", "/metrics").text
    assert "penstock_fleet" in admin.call("GET", "/metrics").text
    forget(server_with_keys)
