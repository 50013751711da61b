"""How much one answer holds, in bytes of message bodies."""

from __future__ import annotations

from collections.abc import Iterable


def count_fitting(sizes: Iterable[int], max_bytes: int) -> int:
    """As many messages as fit, in their order; the first one in any case, or nothing would move."""
    total = count = 0
    for size in sizes:
        total += size
        if count and total > max_bytes:
            break
        count += 1
    return count
