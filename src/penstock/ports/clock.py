"""Time and randomness.  Only services and duties use them; the domain gets values."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch; never goes backwards."""
        ...


class Dice(Protocol):
    def share(self) -> float:
        """A number in [0, 1)."""
        ...

    def digits(self, count: int) -> str:
        """That many random hexadecimal digits, unguessable."""
        ...
