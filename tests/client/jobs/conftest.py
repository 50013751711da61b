"""A worker of one queue of jobs."""

from __future__ import annotations

import pytest

from penstock import Penstock
from tests.client.jobs.desk import JobDesk
from tests.clocks import ManualClock


@pytest.fixture
def desk(app: Penstock, clock: ManualClock, queue: str, neighbours: list[str]) -> JobDesk:
    return JobDesk(app, clock, queue, neighbours=neighbours)
