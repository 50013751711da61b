"""The clock of a process that shares its store with others."""

from penstock.outbound.clock import TOLERATED_MS, SystemClock

FAR_MS = 3_600_000


def test_a_clock_goes_by_what_others_have_agreed_on():
    alone = SystemClock()

    clock = SystemClock(agree=lambda ours: ours + FAR_MS)

    assert abs(clock.now() - alone.now() - FAR_MS) < FAR_MS // 10


def test_what_others_have_agreed_on_does_not_lead_far_behind_what_the_store_has_seen():
    seen = SystemClock().now() + FAR_MS

    clock = SystemClock(seen, agree=lambda ours: ours - 2 * FAR_MS)

    assert clock.now() >= seen - TOLERATED_MS
