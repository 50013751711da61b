"""The only module that draws random numbers."""

from __future__ import annotations

import os
import random
import threading

_DRAW = 4096


class _Pool(threading.local):
    """Random bytes of the system, drawn for many ids at once; each thread has its own."""

    data = b""
    used = 0


class SystemDice:
    def __init__(self) -> None:
        self._random = random.Random()
        self._pool = _Pool()
        # A forked child would otherwise draw the same bytes as its parent.
        os.register_at_fork(after_in_child=self._forget)

    def share(self) -> float:
        return self._random.random()

    def bits(self, count: int) -> int:
        need = (count + 7) // 8
        pool = self._pool
        end = pool.used + need
        if end > len(pool.data):
            pool.data, end = os.urandom(max(_DRAW, need)), need
        pool.used = end
        return int.from_bytes(pool.data[end - need : end], "big") >> (need * 8 - count)

    def _forget(self) -> None:
        self._pool = _Pool()
