"""Reproducible pseudo-random numbers: each follows from its position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def words(numbers: Ints, salt: int) -> Words:
    """64 bits for each number, by splitmix64."""
    with np.errstate(over="ignore"):
        x = (numbers.astype(np.uint64) + np.uint64(salt) * np.uint64(1 << 40)) * _GOLDEN + _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def shares(numbers: Ints, salt: int) -> Floats:
    """In (0, 1)."""
    return ((words(numbers, salt) >> np.uint64(11)).astype(np.float64) + 0.5) / float(1 << 53)


def log_normal(numbers: Ints, salt: int, *, median: float, spread: float) -> Floats:
    """Realistic durations: most near the median, some many times as long."""
    radius = np.sqrt(-2 * np.log(shares(numbers, salt)))
    normal = radius * np.cos(2 * np.pi * shares(numbers, salt + 1))
    return np.asarray(median * np.exp(spread * normal), dtype=np.float64)
