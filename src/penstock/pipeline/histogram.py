"""Histograms of durations with fixed logarithmic buckets, so that any two can be added.

Bucket 0 holds 0 ms; bucket b holds from 2^((b-1)/4) up to 2^(b/4) ms: four per octave, each 19 %
wider than the one before, up to 41 days.  A percentile is within ten percent of the true one,
mostly within three, whether of a minute or of the sum of a year of minutes.

Many histograms are stored together, without empty buckets: the concatenated `buckets` and `counts`
of all, and where each one starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PER_OCTAVE = 4
BUCKETS = 128  # the last one holds everything longer

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Histograms(NamedTuple):
    starts: Ints  # one more than there are histograms: the last value is the end of the last one
    buckets: Ints  # ascending within a histogram
    counts: Ints

    def __len__(self) -> int:  # of histograms, not of the three fields
        return len(self.starts) - 1

    @classmethod
    def empty(cls, *, of: int) -> Histograms:
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(of + 1, dtype=np.int64), none, none)


def bucket_of(durations: Ints) -> Ints:
    scale = np.log2(np.maximum(durations, 1)) * PER_OCTAVE
    buckets = np.minimum(scale.astype(np.int64) + 1, BUCKETS - 1)
    return np.where(durations <= 0, 0, buckets)


def bounds(buckets: Ints) -> tuple[Floats, Floats]:
    """Lower bounds (inclusive) and upper bounds (exclusive)."""
    lower = np.where(buckets == 0, 0.0, 2.0 ** ((buckets - 1) / PER_OCTAVE))
    upper = np.where(buckets == 0, 0.0, 2.0 ** (buckets / PER_OCTAVE))
    return lower, upper


def count(groups: Ints, buckets: Ints, *, of: int, weights: Ints | None = None) -> Histograms:
    """One histogram for each of the groups 0 … of-1; `weights` are counts to add up."""
    cells = groups * BUCKETS + buckets
    if of * BUCKETS <= max(4 * len(cells), 1 << 20):
        totals = _add_up(cells, weights, of * BUCKETS)
        found = np.flatnonzero(totals)
        counts = totals[found]
    else:  # sparse
        found, places = np.unique(cells, return_inverse=True)
        counts = _add_up(places, weights, len(found))
    rows = np.bincount(found // BUCKETS, minlength=of)
    return Histograms(np.concatenate(([0], np.cumsum(rows))), found % BUCKETS, counts)


def merge(histograms: Histograms, groups: Ints, *, of: int) -> Histograms:
    """Add up histograms of the same group; `groups` has the group of each histogram."""
    of_each = np.repeat(groups, np.diff(histograms.starts))
    return count(of_each, histograms.buckets, of=of, weights=histograms.counts)


def totals(histograms: Histograms) -> Ints:
    sums = np.concatenate(([0], np.cumsum(histograms.counts)))
    return np.asarray(np.diff(sums[histograms.starts]), dtype=np.int64)


def percentile(histograms: Histograms, share: float) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """For each histogram, the value that this share does not exceed, and whether it is empty."""
    sizes = totals(histograms)
    is_empty = sizes == 0
    if not len(histograms.counts):
        return np.zeros(len(sizes), dtype=np.int64), is_empty
    sums = np.cumsum(histograms.counts)
    before = np.concatenate(([0], sums))[histograms.starts[:-1]]
    rank = np.maximum(np.ceil(share * sizes), 1)
    place = np.minimum(np.searchsorted(sums, before + rank), len(sums) - 1)
    within = before + rank - (sums[place] - histograms.counts[place])
    lower, upper = bounds(histograms.buckets[place])
    # Assumes that values are spread evenly within a bucket.
    value = lower + (upper - lower) * (within - 0.5) / histograms.counts[place]
    return np.where(is_empty, 0, np.rint(value)).astype(np.int64), is_empty


def _add_up(places: Ints, weights: Ints | None, of: int) -> Ints:
    if weights is None:
        return np.bincount(places, minlength=of)
    # Sums of floats are exact up to 2^53.
    return np.bincount(places, weights=weights, minlength=of).astype(np.int64)
