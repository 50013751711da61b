"""Restarts of processes that crash: at once the first time, then after pauses that grow.

Processes that crash together are one crash: the pause is for the command that does not run, however
many run it.  A process that ran for STEADY_MS did not crash because of its start.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from penstock.domain.limits import MINUTE, SECOND
from penstock.outbound.replicas.ledger import Book, Started

STEADY_MS = 30 * SECOND
_PAUSES_MS = (0, SECOND, MINUTE)  # before the first restart, the second, and at most


def add_crashes(book: Book, crashed: Sequence[Started], *, last_exit: str, now: int) -> None:
    """Those that were found together; all of them are to be started again."""
    is_early = any(now - one.started_at < STEADY_MS for one in crashed)
    book.crashes = book.crashes + 1 if is_early else 1
    book.last_exit = last_exit
    book.owed += len(crashed)
    book.wait_until = now + _pause_ms(book.crashes)


def is_over(book: Book, *, now: int) -> bool:
    return not book.owed and all(now - one.started_at >= STEADY_MS for one in book.started)


def forget(book: Book) -> None:
    book.crashes, book.wait_until, book.last_exit = 0, 0, ""


def describe(book: Book, *, now: int) -> str:
    text = f"its processes crash, {book.crashes} times in a row ({book.last_exit})"
    if now >= book.wait_until:
        return f"{text}; they were started again"
    return f"{text}; the next start is in {(book.wait_until - now + 999) // 1000} s"


def exit_text(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _pause_ms(crashes: int) -> int:
    first, second, most = _PAUSES_MS
    return first if crashes <= 1 else min(second << min(crashes - 2, 10), most)
