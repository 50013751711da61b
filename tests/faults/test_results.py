"""A result is stored if and only if its message is done, wherever the worker is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.domain.message.lifecycle import State
from penstock.store.postgres.store import migrate
from tests.client.jobs.driver import JobDriver
from tests.clocks import ManualClock
from tests.faults.killed_completion import Moment, double

COUNT = 5


@pytest.fixture(params=("sqlite", "postgres"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    url = str(request.getfixturevalue("postgres_url"))
    migrate(url)
    return url


@pytest.mark.parametrize("moment", Moment)
def test_a_killed_worker_leaves_neither_a_result_without_done_nor_done_without_it(
    url: str, moment: Moment
) -> None:
    with Penstock(url) as sender:
        sent = [sender.enqueue("double", {"n": n}).id for n in range(COUNT)]
        start = sender.clock.now()

    words = [sys.executable, "-m", "tests.faults.killed_completion", url, moment]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL

    # Later, when the leases of the killed worker have expired.
    clock = ManualClock(start + 3_600_000)
    with Penstock(url, clock=clock) as app:
        found = results_of(app, sent)
        assert {state is State.DONE for state, result in found if result is not None} <= {True}
        assert {result is not None for state, result in found if state is State.DONE} <= {True}
        assert any(state is State.DONE for state, _ in found) is (moment is Moment.COMMITTED)

        app.handlers.add(double)
        driver = JobDriver(app, clock, "default")
        while driver.run_due():
            pass
        assert results_of(app, sent) == [(State.DONE, str(2 * n)) for n in range(COUNT)]


def results_of(app: Penstock, ids: list[str]) -> list[tuple[State, str | None]]:
    broker = app.backend.broker  # type: ignore[attr-defined]
    found = broker.store.read(lambda s: s.results.of(ids)).result()
    return [(found[one].state, found[one].result) for one in ids]
