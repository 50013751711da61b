"""Autoscalers at work, each on a store of its own; all of their processes are gone after a test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.settings import load
from penstock.settings.load import Flag
from penstock.wiring.broker import Broker, migrate, open_broker
from tests.autoscaling import application
from tests.autoscaling.driver import Driven

Autoscale = Callable[[str], Driven]


@pytest.fixture(params=("sqlite", "postgres"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture
def broker(url: str) -> Iterator[Broker]:
    settings = load(config=None, env={}, flags={"store.url": Flag("--store", url)}).settings
    migrate(settings)
    broker = open_broker(settings)
    broker.start_duties()
    yield broker
    broker.close()


@pytest.fixture
def app(broker: Broker, url: str) -> Iterator[Penstock]:
    application.app.use(url)
    yield application.app
    application.app.close()


@pytest.fixture
def autoscale(broker: Broker, tmp_path: Path) -> Iterator[Autoscale]:
    driven: list[Driven] = []

    def autoscale(text: str) -> Driven:
        driven.append(Driven(broker, text, tmp_path / "fleets"))
        driven[-1].start()
        return driven[-1]

    yield autoscale
    for one in driven:
        one.close()
        for fleet in (tmp_path / "fleets").glob("*.json"):
            for pid in one.pids(fleet.stem):
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
