"""A worker of one queue of jobs."""

from __future__ import annotations

import pytest

from penstock import Penstock
from tests.client.jobs.driver import JobDriver
from tests.clocks import ManualClock


@pytest.fixture
def driver(app: Penstock, clock: ManualClock, queue: str, neighbours: list[str]) -> JobDriver:
    return JobDriver(app, clock, queue, neighbours=neighbours)
