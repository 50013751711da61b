"""The clock of a process that shares its store with others."""

import itertools

import pytest

from penstock.outbound import clock as module
from penstock.outbound.clock import TOLERATED_MS, ServerClock, SystemClock

FAR_MS = 3_600_000


def test_a_clock_goes_by_what_others_have_agreed_on():
    alone = SystemClock()

    clock = SystemClock(agree=lambda ours: ours + FAR_MS)

    assert abs(clock.now() - alone.now() - FAR_MS) < FAR_MS // 10


def test_what_others_have_agreed_on_does_not_lead_far_behind_what_the_store_has_seen():
    seen = SystemClock().now() + FAR_MS

    clock = SystemClock(seen, agree=lambda ours: ours - 2 * FAR_MS)

    assert clock.now() >= seen - TOLERATED_MS


@pytest.mark.parametrize(
    ("trips", "behind_ms"),
    [
        ([(1, 1)], 0),
        ([(0, 150), (1, 1)], 0),  # the first opens a connection, whose answer is then on its way
        ([(0, 90), (0, 40), (0, 60), (0, 50), (0, 70), (1, 1)], 20),
    ],
)
def test_of_the_answers_of_a_database_that_with_the_shortest_way_counts(
    monkeypatch, trips, behind_ms
):
    ours = 0
    ways = itertools.chain(trips, itertools.repeat((0, 1_000)))

    def ask() -> int:
        nonlocal ours
        there, back = next(ways)
        ours += there
        told = FAR_MS + ours
        ours += back
        return told

    monkeypatch.setattr(module, "_steady_ms", lambda: ours)

    clock = ServerClock(ask)

    assert FAR_MS + ours - clock.now() == behind_ms
