"""A part is stuck when it has work and has not finished any of it for too long."""

from penstock.domain.node_part import PartProgress, is_stuck, observe
from tests.clocks import NOON

LONG_MS = 60_000


def observed(*looks: tuple[int, bool, int]) -> PartProgress:
    progress = None
    for moves, has_work, at in looks:
        progress = observe(progress, moves=moves, has_work=has_work, now=NOON + at)
    assert progress is not None
    return progress


def test_a_part_with_work_that_finishes_nothing_is_stuck_after_a_while():
    progress = observed((7, True, 0), (7, True, LONG_MS))

    assert not is_stuck(progress, stuck_ms=LONG_MS, now=NOON + LONG_MS - 1)
    assert is_stuck(progress, stuck_ms=LONG_MS, now=NOON + LONG_MS)


def test_a_part_that_finishes_something_is_not_stuck():
    progress = observed((7, True, 0), (8, True, LONG_MS))

    assert not is_stuck(progress, stuck_ms=LONG_MS, now=NOON + LONG_MS)


def test_a_part_without_work_is_never_stuck():
    progress = observed((7, True, 0), (7, False, LONG_MS))

    assert not is_stuck(progress, stuck_ms=LONG_MS, now=NOON + LONG_MS)


def test_the_time_counts_from_when_the_work_came():
    progress = observed((7, False, 0), (7, False, LONG_MS), (7, True, LONG_MS + 1))

    assert not is_stuck(progress, stuck_ms=LONG_MS, now=NOON + 2 * LONG_MS - 1)
    assert is_stuck(progress, stuck_ms=LONG_MS, now=NOON + 2 * LONG_MS)
