"""Splits a sequence into chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """Slices of at most `most` items, in order."""
    return (items[start : start + most] for start in range(0, len(items), most))
