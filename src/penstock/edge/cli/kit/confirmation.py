"""Ask the user before a change; scripts are not asked."""

from __future__ import annotations

import sys


def is_confirmed(question: str) -> bool:
    """True if the user answers yes, or if no user is at the terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    # Not `input`, which would write the question to standard output if that is a terminal.
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
