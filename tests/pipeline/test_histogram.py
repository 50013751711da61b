"""Histograms that add up, and percentiles read off them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.histogram import (
    BUCKETS,
    Histograms,
    bounds,
    bucket_of,
    count,
    merge,
    percentile,
    totals,
)

DURATIONS = st.lists(st.integers(0, 10_000_000), min_size=1, max_size=60)


def of(*groups: list[int]) -> Histograms:
    """One histogram for each list of durations."""
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    durations = np.array([d for group in groups for d in group], dtype=np.int64)
    return count(numbers, bucket_of(durations), of=len(groups))


def read_off(histograms: Histograms, share: float) -> list[int | None]:
    values, is_missing = percentile(histograms, share)
    return [None if none else int(v) for v, none in zip(values, is_missing, strict=True)]


def as_dicts(histograms: Histograms) -> list[dict[int, int]]:
    ends = zip(histograms.starts[:-1], histograms.starts[1:], strict=True)
    return [
        dict(zip(histograms.buckets[a:b].tolist(), histograms.counts[a:b].tolist(), strict=True))
        for a, b in ends
    ]


@pytest.mark.parametrize("ms", [0, 1, 2, 3, 7, 8, 99, 100, 1_000, 59_999, 86_400_000, 2**31])
def test_a_duration_lies_within_the_bounds_of_its_bucket(ms):
    bucket = bucket_of(np.array([ms]))

    [lower], [upper] = bounds(bucket)

    assert lower <= ms
    assert ms < upper or ms == 0


def test_buckets_grow_with_durations_and_the_last_one_takes_all_longer_ones():
    found = bucket_of(np.arange(0, 200_000))

    assert (np.diff(found) >= 0).all()
    assert bucket_of(np.array([2**62, -5])).tolist() == [BUCKETS - 1, 0]


@given(DURATIONS, DURATIONS)
def test_the_sum_of_two_is_the_histogram_of_both_together(first, second):
    added = merge(of(first, second), np.array([0, 0]), of=1)

    assert as_dicts(added) == as_dicts(of(first + second))


@given(DURATIONS, st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_within_a_fifth_of_the_true_one(durations, share):
    true = sorted(durations)[max(int(np.ceil(share * len(durations))), 1) - 1]

    [found] = read_off(of(durations), share)

    assert found is not None
    assert abs(found - true) <= max(1, 0.2 * true)


def test_many_values_give_percentiles_within_ten_percent():
    durations = np.arange(1, 100_001)

    assert read_off(of(durations.tolist()), 0.5) == [pytest.approx(50_000, rel=0.03)]
    assert read_off(of(durations.tolist()), 0.99) == [pytest.approx(99_000, rel=0.1)]


def test_an_empty_histogram_has_no_percentile():
    assert read_off(of([100], [], [100]), 0.5) == [99, None, 99]
    assert read_off(of([], []), 0.5) == [None, None]
    assert totals(of([1, 1], [], [5])).tolist() == [2, 0, 1]


def test_sparse_and_dense_cells_are_counted_alike():
    groups = np.array([0, 1_999_999, 1_999_999])

    found = count(groups, np.array([3, 4, 4]), of=2_000_000)

    assert found.buckets.tolist() == [3, 4]
    assert found.counts.tolist() == [1, 2]
    assert found.starts[[0, 1, -2, -1]].tolist() == [0, 1, 1, 2]
