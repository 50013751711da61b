"""Wake-ups of commits, collected until a thread announces them to other nodes or processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping

from penstock.domain.chunks import chunks

PAUSE_MS = 5  # at most one announcement in this time, however many commits there are
MAX_QUEUES = 250  # in one announcement; a NOTIFY of PostgreSQL takes up to 8,000 bytes


class Announcements:
    """Filled from any thread; the thread that polls `signal` announces them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[int, int] = {}
        self.signal, self._signal_out = os.pipe()

    def add(self, woken: Mapping[int, int]) -> None:
        with self._lock:
            is_first = not self._counts
            for queue_no, count in woken.items():
                self._counts[queue_no] = self._counts.get(queue_no, 0) + count
        if is_first:
            self.wake()

    def wake(self) -> None:
        """Wake the thread."""
        os.write(self._signal_out, b".")

    def clear_signal(self) -> None:
        os.read(self.signal, 4096)

    def take(self) -> list[tuple[int, int]]:
        with self._lock:
            taken, self._counts = list(self._counts.items()), {}
        return taken

    def close(self) -> None:
        """Once the thread has ended."""
        os.close(self.signal)
        os.close(self._signal_out)


def encode(woken: list[tuple[int, int]]) -> Iterator[str]:
    """Pairs `queue_no:count`, as many in one text as one announcement takes."""
    for chunk in chunks(woken, MAX_QUEUES):
        yield " ".join(f"{queue_no}:{count}" for queue_no, count in chunk)


def add_pairs(woken: dict[int, int], pairs: list[str]) -> None:
    """Add what another node or process announced."""
    for pair in pairs:
        queue_no, _, count = pair.partition(":")
        woken[int(queue_no)] = woken.get(int(queue_no), 0) + int(count)
