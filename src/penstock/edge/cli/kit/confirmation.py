"""Ask the user before a change; scripts are not asked."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

from penstock.edge.cli.kit.exits import note
from penstock.edge.cli.kit.parser import Parser


def yes_flag(parser: Parser) -> None:
    parser.flag("--yes", "do not ask for confirmation on a terminal")


def cancel_flags(parser: Parser) -> None:
    """Flags of commands that cancel all messages of a queue."""
    yes_flag(parser)
    parser.flag("--dry-run", "show how many messages it would cancel, and change nothing")


def may_change(args: Namespace, question: Callable[[], str]) -> bool:
    """True if --yes is given, if the user agrees, or in a script; otherwise prints a note.

    `question` is called only if a user is asked: it may need rights that the change does not.
    """
    if args.yes or not _has_user() or is_confirmed(question()):
        return True
    note("nothing was changed")
    return False


def is_confirmed(question: str) -> bool:
    """True if the user answers yes, or if no user is at the terminal."""
    if not _has_user():
        return True
    # Not `input`, which would write the question to standard output if that is a terminal.
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _has_user() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
