"""Jobs of one queue, and a list of what ran."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock import Penstock
from tests.client.jobs.driver import JobDriver
from tests.clocks import ManualClock


class FlowDriver(JobDriver):
    """Also runs the jobs that are released by those that ran."""

    def run_all(self) -> None:
        for _ in range(6):
            self.run_due()


@pytest.fixture
def driver(app: Penstock, clock: ManualClock, queue: str, neighbours: list[str]) -> FlowDriver:
    return FlowDriver(app, clock, queue, neighbours=neighbours)


@pytest.fixture
def ran() -> list[Any]:
    return []


@pytest.fixture
def jobs(app: Penstock, queue: str, ran: list[Any]) -> SimpleNamespace:
    @app.job(queue=queue, attempts=1)
    def fetch(n: int) -> int:
        ran.append(("fetch", n))
        if n < 0:
            raise ValueError(n)
        return n * 10

    @app.job(queue=queue)
    def merge(parts: list[int], plus: int = 0) -> int:
        ran.append(("merge", parts))
        return sum(parts) + plus

    @app.job(queue=queue)
    def note(text: str) -> None:
        ran.append(text)

    return SimpleNamespace(fetch=fetch, merge=merge, note=note)
