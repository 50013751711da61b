"""Nodes go by the clock of the database, whatever their own clocks say."""

from __future__ import annotations

import pytest

from penstock.domain.limits import DAY, MINUTE
from penstock.outbound import clock as clocks
from penstock.settings import Settings
from penstock.settings.values import StoreSettings
from penstock.store.maintenance.clock_mark import read_mark
from penstock.store.postgres.store import migrate
from penstock.wiring.broker import open_broker
from tests.factories import a_new_message, some_settings


@pytest.mark.parametrize("ahead_ms", [2 * DAY, -2 * DAY])
def test_a_node_whose_clock_is_days_off_does_not_change_the_store_s_time(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, ahead_ms: int
) -> None:
    migrate(postgres_url)
    real = clocks.wall_ms
    settings = Settings(store=StoreSettings(url=postgres_url))
    monkeypatch.setattr(clocks, "wall_ms", lambda: real() + ahead_ms)
    monkeypatch.setattr("penstock.wiring.broker.wall_ms", clocks.wall_ms)
    broker = open_broker(settings)
    try:
        now = broker.clock.now()
        queue = broker.store.write(lambda s: s.queues.add("q", some_settings(), now=now)).result()
        broker.store.send([a_new_message(queue, now=now)]).result()
        broker.run_duties()

        right = real()
        assert abs(now - right) < MINUTE
        assert abs(broker.wall.now() - right) < MINUTE
        assert abs(broker.store.read(read_mark).result() - right) < MINUTE
    finally:
        broker.close()


def test_a_store_that_is_ahead_of_its_database_is_set_back_at_a_start(postgres_url: str) -> None:
    migrate(postgres_url)
    settings = Settings(store=StoreSettings(url=postgres_url))
    right = clocks.wall_ms()
    wrong = right + 2 * DAY
    broker = open_broker(settings)
    queue = broker.store.write(lambda s: s.queues.add("q", some_settings(), now=wrong)).result()
    broker.store.send([a_new_message(queue, now=wrong)]).result()
    assert broker.store.read(read_mark).result() == wrong
    broker.close()

    broker = open_broker(settings)
    try:
        assert abs(broker.store.read(read_mark).result() - right) < MINUTE
    finally:
        broker.close()
