"""A registered worker, and names and times for each test, because tests share their stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from penstock import Penstock
from penstock.wiring.broker import Broker
from tests.client.bus.driver import BusDriver
from tests.clocks import ManualClock
from tests.edge.api import a_name

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment = Callable[..., datetime]


@pytest.fixture
def worker(app: Penstock, clock: ManualClock, broker: Broker, neighbours: list[str]) -> BusDriver:
    return BusDriver(app, clock, broker=broker, neighbours=neighbours)


@pytest.fixture
def topic() -> str:
    return a_name("orders")


@pytest.fixture
def account() -> str:
    """The first tag of the test's notifications."""
    return a_name("account")


@pytest.fixture
def tenant() -> str:
    return a_name("tenant")


@pytest.fixture
def start(clock: ManualClock) -> int:
    """The instant at which the test began."""
    return clock.now()


@pytest.fixture
def moment(start: int) -> Moment:
    """An instant relative to the beginning of the test."""
    return lambda **after: EPOCH + timedelta(milliseconds=start) + timedelta(**after)
