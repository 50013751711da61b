"""Jobs that recur: declared by a worker's start, in a store of one's own and at a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.client.embedded import Embedded
from penstock.client.remote import Remote
from penstock.domain.errors import InvalidRequest
from penstock.runtime.recurring import Recurrer
from tests.clocks import ManualClock
from tests.edge.api import a_name
from tests.edge.live import LiveServer


def an_app(url: str, clock: ManualClock | None = None) -> tuple[Penstock, str]:
    app, queue = Penstock(url, clock=clock), a_name("reports")

    @app.recurring(every="1h", overlap="skip", name=queue, arguments={"days": 7})
    @app.job(queue=queue, attempts=3, timeout="30s", priority=2)
    def report(days: int, title: str = "all") -> None: ...

    return app, queue


def test_a_job_recurs_in_a_store_of_ones_own(tmp_path: Path) -> None:
    clock = ManualClock()
    app, queue = an_app(f"sqlite:///{tmp_path}/jobs.db", clock)
    with app:
        source = app.work_source()
        app.work_source()  # saying it again changes nothing
        backing = app._opening.get()
        assert isinstance(backing, Embedded)

        clock.advance(hours=1)
        Recurrer(backing.broker.recurring).tick(clock.now())

        work, _ = source.claim([queue], limit=10, lease_ms=30_000, worker_id="w")
        [one] = work
        assert one.body == '{"days":7}'
        assert (one.max_attempts, one.timeout_ms, one.priority) == (3, 30_000, 2)


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_firing_of_a_unique_job_is_the_one_that_is_there_already(
    tmp_path: Path, server: LiveServer, clock: ManualClock, is_remote: bool
) -> None:
    app = Penstock(server.url if is_remote else f"sqlite:///{tmp_path}/jobs.db", clock=clock)
    queue = a_name("reports")

    @app.recurring(every="1h", name=queue, arguments={"days": 7})
    @app.job(queue=queue, unique=True)
    def report(days: int) -> None: ...

    with app:
        source, backing = app.work_source(), app._opening.get()
        broker = backing.broker if isinstance(backing, Embedded) else server.broker
        by_hand = report.enqueue(7)

        clock.advance(hours=1)
        Recurrer(broker.recurring).tick(clock.now())

        work, _ = source.claim([queue], limit=10, lease_ms=30_000, worker_id="w")
        assert [one.id for one in work] == [by_hand.id]
        assert broker.recurring.get(queue).result().last_id == by_hand.id


def test_a_job_recurs_at_a_server(server: LiveServer, remote: Remote) -> None:
    app, queue = an_app(server.url)
    with app:
        app.work_source()

    declared = remote.recurring.get(queue)

    assert (declared.every_ms, declared.overlap, declared.body) == (3_600_000, "skip", {"days": 7})
    assert (declared.max_attempts, declared.timeout_ms, declared.priority) == (3, 30_000, 2)


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


def test_the_refusal_of_a_policy_names_those_that_there_are() -> None:
    app = Penstock("sqlite:///never-opened.db")

    with pytest.raises(InvalidRequest, match="overlap is one of allow, skip, wait, replace"):
        app.recurring(every="1h", overlap="maybe")(app.job(_nothing))  # type: ignore[arg-type]


def test_what_is_no_job_cannot_recur() -> None:
    app = Penstock("sqlite:///never-opened.db")

    with pytest.raises(InvalidRequest, match=r"above @app\.job"):
        app.recurring(every="1h")(_nothing)  # type: ignore[arg-type]


def _nothing() -> None: ...
