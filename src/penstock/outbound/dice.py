"""The only module that draws random numbers."""

from __future__ import annotations

import os
import random
from collections import defaultdict

_DRAW = 256  # texts of the same length drawn at once, to save system calls


class SystemDice:
    def __init__(self) -> None:
        self._random = random.Random()
        self._drawn: defaultdict[int, list[str]] = defaultdict(list)  # by length
        # Otherwise a forked child would use the same digits as its parent.
        os.register_at_fork(after_in_child=self._drawn.clear)

    def share(self) -> float:
        return self._random.random()

    def digits(self, count: int) -> str:
        drawn = self._drawn[count]
        try:
            return drawn.pop()  # atomic, so that no two threads get the same
        except IndexError:
            text = os.urandom((count * _DRAW + 1) // 2).hex()
            first, *others = (text[i * count : (i + 1) * count] for i in range(_DRAW))
            drawn += others
            return first
