"""A fleet does not stop a worker that it will soon need again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.scaling.fleet import External, Fleet
from penstock.domain.scaling.least_needed import RecentPeaks, least_needed, remember
from penstock.domain.scaling.recommendation import Inputs, Recommendation, ScalingReason

NOW = 10_000_000
MINUTE = 60_000


def fleet(**more: Any) -> Fleet:
    return Fleet(name="mail", queue="mail", replicas=External(), **more)


def said(needed: int | None, *, running: int = 4, **inputs: Any) -> Recommendation:
    made = Inputs(
        running=running,
        starting=0,
        requested=running,
        samples=1,
        samples_needed=1,
        backlog_goal_s=300,
        needed=needed,
        **inputs,
    )
    change = 0 if needed is None else needed - running
    return Recommendation(change=change, reason=ScalingReason.STEADY, inputs=made)


def after(*needed: tuple[int, int], of: Fleet | None = None) -> RecentPeaks:
    """Decisions at these minutes."""
    recent = RecentPeaks()
    for minute, number in needed:
        recent = remember(recent, said(number), of or fleet(), now=NOW + minute * MINUTE)
    return recent


def test_no_fewer_stay_than_were_needed_lately() -> None:
    recent = after((0, 7), (1, 3), (2, 5), (3, 2))

    least = [
        least_needed(recent, said(2), fleet(), now=NOW + minute * MINUTE) for minute in range(9)
    ]

    assert least == [7, 7, 7, 7, 7, 5, 5, 2, 0]


def test_without_a_time_only_the_present_counts() -> None:
    of = fleet(steady_ms=0)

    assert least_needed(after((0, 7), of=of), said(1), of, now=NOW + 1) == 0


def test_a_run_that_decided_nothing_is_not_remembered() -> None:
    assert remember(RecentPeaks(), said(None), fleet(), now=NOW) == RecentPeaks()


def test_no_fewer_stay_than_keep_up_with_what_arrives() -> None:
    recent = remember(RecentPeaks(), said(4, backlog=9, rate_per_worker=2.0), fleet(), now=NOW)
    later = NOW + 10 * MINUTE

    assert least_needed(recent, said(0, publish_rate=5.0), fleet(), now=later) == 3
    assert least_needed(recent, said(0, publish_rate=4.0), fleet(), now=later) == 2
    assert least_needed(recent, said(0, publish_rate=0.0), fleet(), now=later) == 0
    assert least_needed(recent, said(0, publish_rate=5.0), fleet(keep_up=False), now=later) == 0


def test_workers_that_waited_for_work_do_not_measure_the_full_rate() -> None:
    recent = remember(RecentPeaks(), said(4, backlog=9, rate_per_worker=2.0), fleet(), now=NOW)

    after_quiet = remember(recent, said(4, backlog=0, rate_per_worker=0.1), fleet(), now=NOW)

    assert after_quiet.full_rate == 2.0


def test_work_that_became_slower_is_learnt() -> None:
    recent = RecentPeaks((), 2.0)
    for _ in range(30):
        recent = remember(recent, said(4, backlog=9, rate_per_worker=0.5), fleet(), now=NOW)

    assert recent.full_rate == 0.5


@given(numbers=st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_peaks_give_the_same_result_as_all_numbers_would(numbers: list[int]) -> None:
    recent, of = RecentPeaks(), fleet(keep_up=False)
    for minute, number in enumerate(numbers):
        now = NOW + minute * MINUTE
        recent = remember(recent, said(number), of, now=now)

        assert least_needed(recent, said(0), of, now=now) == max(
            numbers[max(0, minute - 4) : minute + 1]
        )
        assert len(recent.peaks) <= 5
