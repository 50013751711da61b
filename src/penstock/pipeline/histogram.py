"""Histograms of durations: buckets of one width on a logarithmic scale, so that any two add up.

Bucket 0 holds 0 ms; bucket b holds from 2^((b-1)/4) up to 2^(b/4) ms: four to an octave, each 19 %
wider than the one before, up to 41 days.  A percentile read off is within ten percent of the true
one, mostly within three, whether it is of a minute or of a year of minutes added up.

Many histograms are kept together, only the buckets with something in them: `buckets` and `counts`
of all, one after the other, and where each one begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PER_OCTAVE = 4
BUCKETS = 128  # the last one takes everything beyond

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Histograms(NamedTuple):
    starts: Ints  # one more than there are histograms: the last one is where the last one ends
    buckets: Ints  # ascending within a histogram
    counts: Ints

    def __len__(self) -> int:  # of histograms, not of the three fields
        return len(self.starts) - 1


def bucket_of(durations: Ints) -> Ints:
    scale = np.log2(np.maximum(durations, 1)) * PER_OCTAVE
    buckets = np.minimum(scale.astype(np.int64) + 1, BUCKETS - 1)
    return np.where(durations <= 0, 0, buckets)


def bounds(buckets: Ints) -> tuple[Floats, Floats]:
    """From (included) and to (not included)."""
    lower = np.where(buckets == 0, 0.0, 2.0 ** ((buckets - 1) / PER_OCTAVE))
    upper = np.where(buckets == 0, 0.0, 2.0 ** (buckets / PER_OCTAVE))
    return lower, upper


def count(groups: Ints, buckets: Ints, *, of: int, weights: Ints | None = None) -> Histograms:
    """One histogram for each of the groups 0 … of-1; the weights are counts to be added up."""
    cells = groups * BUCKETS + buckets
    if of * BUCKETS <= max(4 * len(cells), 1 << 20):
        totals = _added(cells, weights, of * BUCKETS)
        found = np.flatnonzero(totals)
        counts = totals[found]
    else:  # few of very many cells
        found, places = np.unique(cells, return_inverse=True)
        counts = _added(places, weights, len(found))
    rows = np.bincount(found // BUCKETS, minlength=of)
    return Histograms(np.concatenate(([0], np.cumsum(rows))), found % BUCKETS, counts)


def merge(histograms: Histograms, groups: Ints, *, of: int) -> Histograms:
    """Add up those of the same group; `groups` says of each histogram which one it is."""
    of_each = np.repeat(groups, np.diff(histograms.starts))
    return count(of_each, histograms.buckets, of=of, weights=histograms.counts)


def totals(histograms: Histograms) -> Ints:
    sums = np.concatenate(([0], np.cumsum(histograms.counts)))
    return np.asarray(np.diff(sums[histograms.starts]), dtype=np.int64)


def percentile(histograms: Histograms, share: float) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Of each one the value that this share of it does not exceed, and where there is none."""
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
    # As if those of a bucket were spread over it evenly.
    value = lower + (upper - lower) * (within - 0.5) / histograms.counts[place]
    return np.where(is_empty, 0, np.rint(value)).astype(np.int64), is_empty


def _added(places: Ints, weights: Ints | None, of: int) -> Ints:
    if weights is None:
        return np.bincount(places, minlength=of)
    # Sums of floats are exact up to 2^53.
    return np.bincount(places, weights=weights, minlength=of).astype(np.int64)
