"""Hints of commits, collected until a thread announces them to other nodes or processes.

A text of hints has pairs `queue_no:count` and ids of messages that ended, separated by blanks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

PAUSE_MS = 5  # at most one announcement in this time, however many commits there are
MAX_CHARS = 7_000  # of one text; a NOTIFY of PostgreSQL takes up to 8,000 bytes
MAX_ENDED = 2_000  # at once; waiters of the others find out by their own query


class Hints(msgspec.Struct, frozen=True):
    """What a commit has changed that others may wait for.  A lost hint only costs time."""

    woken: Mapping[int, int] = {}  # by queue number: how many messages became ready
    ended: Sequence[str] = ()  # ids of messages
    ended_here: Sequence[str] = ()  # ids of which only this process is informed

    def __bool__(self) -> bool:
        return bool(self.woken or self.ended or self.ended_here)


class Announcements:
    """Filled from any thread; the thread that polls `signal` announces them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[int, int] = {}
        self._ended: dict[str, None] = {}
        self.signal, self._signal_out = os.pipe()

    def add(self, hints: Hints) -> None:
        with self._lock:
            is_first = not self._counts and not self._ended
            for queue_no, count in hints.woken.items():
                self._counts[queue_no] = self._counts.get(queue_no, 0) + count
            if len(self._ended) < MAX_ENDED:
                self._ended.update(dict.fromkeys(hints.ended))
            is_empty = not self._counts and not self._ended
        if is_first and not is_empty:
            self.wake()

    def wake(self) -> None:
        """Wake the thread."""
        os.write(self._signal_out, b".")

    def clear_signal(self) -> None:
        os.read(self.signal, 4096)

    def take(self) -> Hints:
        with self._lock:
            taken = Hints(self._counts, list(self._ended)[:MAX_ENDED])
            self._counts, self._ended = {}, {}
        return taken

    def close(self) -> None:
        """Once the thread has ended."""
        os.close(self.signal)
        os.close(self._signal_out)


def encode(hints: Hints, *, max_chars: int = MAX_CHARS) -> Iterator[str]:
    """As texts, each as long as one announcement takes."""
    pairs = [f"{queue_no}:{count}" for queue_no, count in hints.woken.items()]
    words: list[str] = []
    chars = 0
    for word in [*pairs, *hints.ended]:
        if chars + len(word) >= max_chars:
            yield " ".join(words)
            words, chars = [], 0
        words.append(word)
        chars += len(word) + 1
    if words:
        yield " ".join(words)


def decode(texts: Iterable[str]) -> Hints:
    """What other nodes or processes have announced."""
    woken: dict[int, int] = {}
    ended: list[str] = []
    for text in texts:
        for word in text.split():
            queue_no, colon, count = word.partition(":")
            if colon:
                woken[int(queue_no)] = woken.get(int(queue_no), 0) + int(count)
            else:
                ended.append(word)
    return Hints(woken, ended)
