"""A number is final once all transactions that were writing when it was read have ended."""

from __future__ import annotations

from penstock.domain.lake.progress import VisibleRanges


def test_an_observation_without_writers_is_final_at_once():
    visible: VisibleRanges[int] = VisibleRanges()
    assert visible.observe(7, set()) == 7
    assert visible.observe(9, set()) == 9


def test_numbers_wait_for_those_who_were_writing_and_not_for_others():
    visible: VisibleRanges[int] = VisibleRanges()
    assert visible.observe(7, {"a", "b"}) is None
    assert visible.observe(8, {"b", "c"}) is None
    assert visible.observe(9, {"c", "d"}) == 7, "a and b have ended; c came later"


def test_rows_become_final_even_if_some_transaction_is_always_writing():
    visible: VisibleRanges[int] = VisibleRanges()
    settled = [visible.observe(turn, {f"w{turn}", f"w{turn + 1}"}) for turn in range(6)]
    assert settled == [None, None, 0, 1, 2, 3] or settled[2:] == sorted(
        no for no in settled[2:] if no is not None
    )
    assert settled[-1] is not None


def test_a_long_transaction_holds_back_later_rows():
    visible: VisibleRanges[int] = VisibleRanges()
    observed = [visible.observe(turn, {"long", f"w{turn}"}) for turn in range(5)]
    assert observed == [None] * 5
    assert visible.observe(5, {"w5"}) == 4
