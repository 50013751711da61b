"""Exit codes, and how an expected failure is told: one line on stderr, never a traceback."""

from __future__ import annotations

import sys

from penstock.client.errors import Unreachable
from penstock.domain.errors import PenstockError, StoreUnavailable

OK = 0
REFUSED = 1  # the request was refused or failed
USAGE = 2  # the command was not understood
UNREACHABLE = 3  # the server or the store does not answer
NOTHING = 4  # nothing there: no message came
INTERRUPTED = 130  # Ctrl-C

TABLE = {
    OK: "done",
    REFUSED: "refused or failed",
    USAGE: "the command was not understood",
    UNREACHABLE: "the server or the store does not answer",
    NOTHING: "nothing there: no message came in time",
    INTERRUPTED: "interrupted by Ctrl-C",
}


class UsageError(Exception):
    """The command line itself is wrong."""

    code = "usage"


def tell(text: object, code: str) -> None:
    print(f"penstock: {text} ({code})", file=sys.stderr)


def exit_code(error: PenstockError | Unreachable | UsageError) -> int:
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, StoreUnavailable | Unreachable):
        return UNREACHABLE
    return REFUSED


def note(text: str) -> None:
    """For people, beside the output that a program may be reading."""
    print(f"penstock: {text}", file=sys.stderr)
