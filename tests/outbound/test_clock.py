"""The clock of a process that shares its store with others."""

import itertools

import pytest

from penstock.domain.store.store_time import MAX_CARRY_MS
from penstock.outbound import clock as module
from penstock.outbound.clock import TOLERATED_MS, ServerClock, SystemClock, WallClock

FAR_MS = 3_600_000


def test_a_clock_uses_the_offset_that_others_have_agreed_on():
    alone = SystemClock()

    clock = SystemClock(agree=lambda ours: ours + FAR_MS)

    assert abs(clock.now() - alone.now() - FAR_MS) < FAR_MS // 10


def test_an_agreed_offset_does_not_lead_far_behind_what_the_store_has_seen():
    seen = SystemClock().now()

    clock = SystemClock(floor=seen, agree=lambda ours: ours - MAX_CARRY_MS // 2)

    assert clock.now() >= seen - TOLERATED_MS


def test_an_agreed_offset_counts_more_than_an_instant_in_the_future():
    """Those who agreed have set the store back: the instant was read before that."""
    clock = SystemClock(floor=SystemClock().now() + FAR_MS)

    assert abs(clock.now() - SystemClock().now()) < FAR_MS // 10


def test_a_clock_starts_at_the_given_instant():
    clock = SystemClock(FAR_MS)

    assert FAR_MS <= clock.now() < 2 * FAR_MS


def test_the_wall_clock_follows_the_machine(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)
    assert WallClock().now() == 5
    monkeypatch.setattr("time.time_ns", lambda: 4_000_000)
    assert WallClock().now() == 4


def test_a_database_whose_clock_goes_back_a_little_is_waited_for(monkeypatch):
    database_time = FAR_MS
    monkeypatch.setattr(module, "_steady_ms", lambda: 0)
    clock = ServerClock(lambda: database_time)
    assert clock.now() == FAR_MS

    database_time = FAR_MS - MAX_CARRY_MS
    clock.adjust()

    assert clock.now() == FAR_MS


def test_a_database_whose_clock_goes_back_far_is_followed(monkeypatch, caplog):
    database_time = FAR_MS
    monkeypatch.setattr(module, "_steady_ms", lambda: 0)
    clock = ServerClock(lambda: database_time)
    assert clock.now() == FAR_MS

    database_time = FAR_MS - MAX_CARRY_MS - 1
    clock.adjust()

    assert clock.now() == clock.now() == database_time
    [record] = [r for r in caplog.records if r.name == "penstock.clock"]
    assert (record.levelname, "by 5 min 0.001 s" in record.getMessage()) == ("WARNING", True)


@pytest.mark.parametrize(
    ("trips", "behind_ms"),
    [
        ([(1, 1)], 0),
        ([(0, 150), (1, 1)], 0),  # the first opens a connection, whose answer is then on its way
        ([(0, 90), (0, 40), (0, 60), (0, 50), (0, 70), (1, 1)], 20),
    ],
)
def test_the_database_answer_with_the_shortest_round_trip_counts(monkeypatch, trips, behind_ms):
    ours = 0
    ways = itertools.chain(trips, itertools.repeat((0, 1_000)))

    def ask() -> int:
        nonlocal ours
        there, back = next(ways)
        ours += there
        database_time = FAR_MS + ours
        ours += back
        return database_time

    monkeypatch.setattr(module, "_steady_ms", lambda: ours)

    clock = ServerClock(ask)

    assert FAR_MS + ours - clock.now() == behind_ms
