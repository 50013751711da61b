"""How many messages fit into one answer, by the bytes of their bodies."""

from __future__ import annotations

from collections.abc import Iterable


def count_fitting(sizes: Iterable[int], max_bytes: int) -> int:
    """Count the messages that fit, in order; the first always does, or it would block the rest."""
    total = count = 0
    for size in sizes:
        total += size
        if count and total > max_bytes:
            break
        count += 1
    return count
