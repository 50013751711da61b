"""Recurring work through both channels of a client: the same calls, the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.api.recurring import NewRecurring, Preview
from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.client.resources.recurring import RecurringClient
from penstock.domain.errors import InvalidRequest, QueueNotFound, ScheduleNotFound
from penstock.domain.limits import HOUR
from penstock.domain.queue.queue import QueueSettings
from penstock.operations.recurring import RecurringOperations
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(tmp_path: Path, clock: ManualClock) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=clock, has_duties=False) as started:
        started.broker.queues.put("mail", QueueSettings()).result()
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def schedules(request: pytest.FixtureRequest, server: LiveServer) -> RecurringClient:
    channel: Channel
    if request.param == "over HTTP":
        channel = Transport(server.url)
    else:
        channel = LocalChannel(RecurringOperations(server.broker.recurring).handlers())
    return RecurringClient(channel)


def hourly(queue: str = "mail", **fields: object) -> NewRecurring:
    return NewRecurring(queue=queue, every_ms=HOUR, **fields)  # type: ignore[arg-type]


def test_recurring_work_is_declared_found_paused_run_and_removed(
    schedules: RecurringClient,
) -> None:
    body = msgspec.Raw(b'{"report": 7}')
    made = schedules.put("nightly", hourly(body=body, tags=("a",), owner="shop"))

    assert (made.name, made.queue, made.body, made.tags) == (
        "nightly",
        "mail",
        {"report": 7},
        ("a",),
    )
    assert made.created_at.timestamp() * 1000 == NOON
    assert schedules.put("nightly", hourly(body=body, tags=("a",), owner="shop")) == made
    assert schedules.get("nightly") == made
    assert schedules.pause("nightly").is_paused
    assert not schedules.resume("nightly").is_paused
    assert schedules.get("nightly").last_id is None
    assert schedules.run("nightly") == schedules.get("nightly").last_id
    schedules.remove("nightly")
    with pytest.raises(ScheduleNotFound):
        schedules.get("nightly")


def test_all_of_it_is_listed_over_several_pages(schedules: RecurringClient) -> None:
    names = [f"job-{number:03}" for number in range(101)]
    for name in names:
        schedules.put(name, hourly())

    assert [one.name for one in schedules.list()] == names


def test_a_schedule_that_its_application_no_longer_declares_is_retired(
    schedules: RecurringClient, clock: ManualClock
) -> None:
    for name in ("kept", "dropped"):
        schedules.put(name, hourly(owner="shop"))
    clock.advance(minutes=1)

    assert schedules.retire("shop", ["kept"]) == ["dropped"]
    assert [one.name for one in schedules.list()] == ["kept"]


def test_the_next_firings_are_previewed(schedules: RecurringClient) -> None:
    schedules.put("nightly", hourly())

    instants = [at.timestamp() * 1000 for at in schedules.preview("nightly", count=2)]
    assert instants == [NOON + HOUR, NOON + 2 * HOUR]
    [first] = schedules.preview_rhythm(Preview(cron="30 12 * * *", count=1))
    assert first.timestamp() * 1000 == NOON + HOUR // 2


def test_errors_are_those_of_the_broker(schedules: RecurringClient) -> None:
    with pytest.raises(QueueNotFound):
        schedules.put("nightly", hourly("nowhere"))
    with pytest.raises(InvalidRequest, match="cron or every_ms"):
        schedules.put("nightly", NewRecurring(queue="mail"))
    with pytest.raises(InvalidRequest):
        schedules.preview_rhythm(Preview(every_ms=HOUR, count=0))
    with pytest.raises(ScheduleNotFound):
        schedules.run("nightly")
