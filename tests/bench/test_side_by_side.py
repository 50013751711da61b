"""The table of the benchmark of processes that share a file, from given measurements."""

from __future__ import annotations

from collections import Counter

from bench.report import processes_text
from bench.side_by_side import COUNTS, LOADS, SideBySide


def found(**rates: float) -> SideBySide:
    """100/s in every round, but for what is said: `send_8=90`."""
    every = [(load, count) for load in LOADS for count in COUNTS]
    measured = {one: [rates.get(f"{one[0]}_{one[1]}", 100.0)] for one in every}
    shares = {(load, count): [1 / count] for load, count in every}
    return SideBySide(32, measured, shares, {one: [5.0] for one in every})


def test_the_aim_is_the_rate_of_one_process() -> None:
    few = found(send_8=90)

    assert few.is_met("send", 4)
    assert not few.is_met("send", 8)
    assert "90/s ±0% 0.90x" in processes_text(few)


def test_an_error_in_any_process_fails_all_rows() -> None:
    some = found()
    some.errors = Counter({"StoreUnavailable: no": 2})

    assert not some.is_met("cycle", 2)
    assert "error, 2 times: StoreUnavailable: no" in processes_text(some)
