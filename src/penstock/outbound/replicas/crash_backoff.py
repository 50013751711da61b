"""Back-off for processes that crash: restart at once the first time, then after growing pauses.

Processes that crash together count as one crash: the pause is for a command that does not run, not
for each process.  A crash of processes that ran for STEADY_MS counts as the first one again.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from penstock.domain.limits import MINUTE, SECOND
from penstock.outbound.replicas.ledger import LedgerState, StartedProcess

STEADY_MS = 30 * SECOND
_PAUSES_MS = (0, SECOND, MINUTE)  # before the first restart, the second, and at most


def add_crashes(
    state: LedgerState, crashed: Sequence[StartedProcess], *, last_exit: str, now: int
) -> None:
    """Record processes that were found crashed together; all of them are to be restarted."""
    is_early = any(now - one.started_at < STEADY_MS for one in crashed)
    state.crashes = state.crashes + 1 if is_early else 1
    state.last_exit = last_exit
    state.to_start += len(crashed)
    state.wait_until = now + _pause_ms(state.crashes)


def is_over(state: LedgerState, *, now: int) -> bool:
    return not state.to_start and all(now - one.started_at >= STEADY_MS for one in state.started)


def forget(state: LedgerState) -> None:
    state.crashes, state.wait_until, state.last_exit = 0, 0, ""


def describe(state: LedgerState, *, now: int) -> str:
    text = f"its processes crashed {state.crashes} times in a row ({state.last_exit})"
    if now >= state.wait_until:
        return f"{text}; they were restarted"
    return f"{text}; the next start is in {(state.wait_until - now + 999) // 1000} s"


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
