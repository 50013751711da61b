"""Fleets through both channels of a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.client.resources.workers import ScalingClient
from penstock.domain.errors import FleetNotFound, FleetNotWatched, InvalidRequest
from penstock.domain.scaling.fleet_run import FleetState
from penstock.domain.scaling.fleet_status import DECISION, FleetStatus, FleetTrouble, NewFact
from penstock.operations.scaling import ScalingOperations
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")

MAIL = FleetStatus(
    name="mail",
    group="own",
    queue="mail",
    source="own",
    profile="default",
    kind="external",
    min=0,
    max=5,
    interval_ms=10_000,
    seen_at=NOON,
    seen_by="node-1",
    troubles=(FleetTrouble("source", "source_unavailable", "no answer", NOON),),
    state=FleetState(wanted=3),
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(tmp_path: Path, clock: ManualClock) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=clock, has_duties=False) as started:
        facts = [NewFact(DECISION, "mail", {"change": change}) for change in (1, 2)]
        started.broker.scaling.save_tick([MAIL], facts, now=NOON).result()
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def scaling(request: pytest.FixtureRequest, server: LiveServer) -> ScalingClient:
    broker = server.broker
    channel: Channel
    if request.param == "over HTTP":
        channel = Transport(server.url)
    else:
        handlers = ScalingOperations(broker.scaling, broker.facts, broker.clock).handlers()
        channel = LocalChannel(handlers)
    return ScalingClient(channel)


def test_a_fleet_is_listed_with_what_its_autoscaler_saw(scaling: ScalingClient) -> None:
    fleet = scaling.get("mail")

    assert scaling.list() == [fleet]
    assert (fleet.name, fleet.replicas_by, fleet.wanted, fleet.queues) == (
        "mail",
        "external",
        3,
        [],
    )
    assert fleet.seen_at is not None
    assert fleet.seen_at.timestamp() * 1000 == NOON
    [trouble] = fleet.troubles
    assert (trouble.code, trouble.since_at) == ("source_unavailable", fleet.seen_at)


def test_decisions_are_listed_newest_first(scaling: ScalingClient) -> None:
    assert [one.decision for one in scaling.decisions("mail")] == [{"change": 2}, {"change": 1}]
    assert [one.decision for one in scaling.decisions("mail", limit=1)] == [{"change": 2}]
    with pytest.raises(InvalidRequest):
        scaling.decisions("mail", limit=0)


def test_the_number_of_workers_is_refused_once_no_autoscaler_runs(
    scaling: ScalingClient, clock: ManualClock
) -> None:
    assert scaling.wanted("mail") == 3

    clock.advance(minutes=5)

    with pytest.raises(FleetNotWatched):
        scaling.wanted("mail")
    assert not scaling.get("mail").is_watched
    with pytest.raises(FleetNotFound):
        scaling.wanted("unknown")
