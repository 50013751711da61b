"""The table of the push benchmark, from given measurements."""

from __future__ import annotations

from bench.fsync import Latency
from bench.push import Push
from bench.report import push_text


def test_all_three_figures_are_reported() -> None:
    found = Push(
        1_000,
        4_321.0,
        Latency(1.5, 9.25, 9.5, 100),
        Latency(0.5, 2.5, 3.0, 100),
        3.25,
        3_000,
        1_430.0,
    )

    text = push_text(found)

    assert "4,321 deliveries/s" in text
    assert "9.25 ms (1.50)" in text
    assert "3.2 s, at most 1,430/s" in text
    assert found.as_json()["disk"]["p99"] == 2.5
