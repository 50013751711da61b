"""The only module that draws random numbers."""

from __future__ import annotations

import os
import random


class SystemDice:
    def __init__(self) -> None:
        self._random = random.Random()

    def share(self) -> float:
        return self._random.random()

    def bits(self, count: int) -> int:
        need = (count + 7) // 8
        return int.from_bytes(os.urandom(need), "big") >> (need * 8 - count)
