"""Recurring jobs: declared when a worker starts, in every environment."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Penstock
from penstock.client.remote.server import Remote
from penstock.domain.errors import InvalidRequest
from penstock.runtime.duties import ScheduleDuty
from tests.client.jobs.driver import JobDriver
from tests.edge.api import a_name
from tests.edge.live import LiveServer


@pytest.fixture
def name() -> str:
    return a_name("reports")


def declare(app: Penstock, name: str) -> None:
    @app.recurring(every="1h", overlap="skip", name=name, arguments={"days": 7})
    @app.job(queue=name, attempts=3, timeout="30s", priority=2)
    def report(days: int, title: str = "all") -> None: ...


def test_a_worker_declares_recurring_jobs_and_each_firing_is_one_job(app, name, clock, broker):
    declare(app, name)
    driver = JobDriver(app, clock, name)
    assert driver.claim() == []
    assert driver.claim() == [], "to declare it again changes nothing"

    clock.advance(hours=1)
    ScheduleDuty(broker.recurring).tick(clock.now())

    [work] = driver.claim()
    assert work.body == '{"days":7}'
    assert (work.max_attempts, work.timeout_ms, work.priority) == (3, 30_000, 2)
    assert driver.claim() == []


def test_a_firing_of_a_unique_job_is_the_one_that_is_there_already(app, name, clock, broker):
    @app.recurring(every="1h", name=name, arguments={"days": 7})
    @app.job(queue=name, unique=True)
    def report(days: int) -> None: ...

    driver = JobDriver(app, clock, name)
    assert driver.claim() == []
    by_hand = report.enqueue(7)

    clock.advance(hours=1)
    ScheduleDuty(broker.recurring).tick(clock.now())

    assert [work.id for work in driver.claim()] == [by_hand.id]
    assert broker.recurring.get(name).result().last_id == by_hand.id


@pytest.mark.no_store("server")
def test_a_server_shows_what_an_application_declared(
    server: LiveServer, remote: Remote, name: str
) -> None:
    with Penstock(server.url) as app:
        declare(app, name)
        app.job_source()

    declared = remote.recurring.get(name)

    assert (declared.every_ms, declared.overlap, declared.body) == (3_600_000, "skip", {"days": 7})
    assert (declared.max_attempts, declared.timeout_ms, declared.priority) == (3, 30_000, 2)


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cron": "* * * * *", "every": "1h"},
        {"cron": "nonsense"},
        {"cron": "* * * * *", "zone": "Nowhere"},
        {"every": "1h", "overlap": "maybe"},
        {"every": "1h", "catch_up": "maybe"},
        {"every": "1h", "name": "not/a/name"},
        {"every": "1h", "arguments": {"days": "seven"}},
        {"every": "1h", "arguments": {"unknown": 1}},
    ],
)
def test_nonsense_is_refused_where_it_is_written(given: dict[str, Any]) -> None:
    app = Penstock("sqlite:///never-opened.db")

    with pytest.raises(InvalidRequest):

        @app.recurring(**given)
        @app.job()
        def report(days: int = 1) -> None: ...


@pytest.mark.no_store("declaring")
def test_the_refusal_of_a_policy_names_those_that_there_are() -> None:
    app = Penstock("sqlite:///never-opened.db")

    with pytest.raises(InvalidRequest, match="overlap is one of allow, skip, wait, replace"):
        app.recurring(every="1h", overlap="maybe")(app.job(_nothing))  # type: ignore[arg-type]


@pytest.mark.no_store("declaring")
def test_only_a_job_can_recur() -> None:
    app = Penstock("sqlite:///never-opened.db")

    with pytest.raises(InvalidRequest, match=r"above @app\.job"):
        app.recurring(every="1h")(_nothing)  # type: ignore[arg-type]


def _nothing() -> None: ...
