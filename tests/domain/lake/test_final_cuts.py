"""A number is final once all transactions that were writing when it was read have ended."""

from __future__ import annotations

from penstock.domain.lake.progress import FinalCuts


def test_a_look_without_writers_is_final_at_once():
    cuts: FinalCuts[int] = FinalCuts()
    assert cuts.look(7, set()) == 7
    assert cuts.look(9, set()) == 9


def test_numbers_wait_for_those_who_were_writing_and_not_for_others():
    cuts: FinalCuts[int] = FinalCuts()
    assert cuts.look(7, {"a", "b"}) is None
    assert cuts.look(8, {"b", "c"}) is None
    assert cuts.look(9, {"c", "d"}) == 7, "a and b have ended; c came later"


def test_a_store_that_is_always_written_to_settles_all_the_same():
    cuts: FinalCuts[int] = FinalCuts()
    settled = [cuts.look(turn, {f"w{turn}", f"w{turn + 1}"}) for turn in range(6)]
    assert settled == [None, None, 0, 1, 2, 3] or settled[2:] == sorted(
        no for no in settled[2:] if no is not None
    )
    assert settled[-1] is not None


def test_a_long_transaction_holds_back_later_rows():
    cuts: FinalCuts[int] = FinalCuts()
    looks = [cuts.look(turn, {"long", f"w{turn}"}) for turn in range(5)]
    assert looks == [None] * 5
    assert cuts.look(5, {"w5"}) == 4
