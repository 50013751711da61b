"""Exit codes, and reporting expected errors: one line on stderr, never a traceback."""

from __future__ import annotations

import errno
import sys

from penstock.client.errors import Unreachable
from penstock.domain.errors import PenstockError, StoreUnavailable

OK = 0
REFUSED = 1
USAGE = 2
UNREACHABLE = 3
NOTHING = 4
INTERRUPTED = 130

TABLE = {
    OK: "done",
    REFUSED: "the request was rejected or failed",
    USAGE: "invalid command line",
    UNREACHABLE: "the server or the store is unreachable",
    NOTHING: "no message arrived, or a wait timed out",
    INTERRUPTED: "interrupted by Ctrl-C",
}


class UsageError(Exception):
    """The command line is invalid."""

    code = "usage"


def report(text: object, code: str) -> None:
    print(f"penstock: {text} ({code})", file=sys.stderr)


def exit_code(error: PenstockError | Unreachable | UsageError) -> int:
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, StoreUnavailable | Unreachable):
        return UNREACHABLE
    return REFUSED


def note(text: str) -> None:
    """Print a remark for people to stderr, apart from the output that a program may read."""
    print(f"penstock: {text}", file=sys.stderr)


def system_text(error: OSError) -> str:
    """The operating system's reason, and the file that it is about."""
    text = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        text += "; choose another port with --port, or stop the program that listens there"
    return text if error.filename is None else f"{error.filename}: {text}"
