"""`penstock`: run a command; report an error as one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from penstock.client.errors import Unreachable
from penstock.domain.errors import PenstockError
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import HelpLine, block
from penstock.edge.cli.registry import ENTRIES, GROUPS, find_command, load, parser_of
from penstock.version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except (PenstockError, Unreachable, UsageError) as error:
        exits.report(error, error.code)
        return exits.exit_code(error)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has exited; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except OSError as error:  # a port in use, a folder that cannot be created
        exits.report(exits.system_text(error), "system")
        return exits.REFUSED


def overview() -> str:
    """`penstock --help`"""
    parts = [
        "Usage: penstock COMMAND [arguments] [flags]",
        "A durable work queue: send messages, claim them, complete them.",
    ]
    parts += [
        block(
            f"{title}:",
            [
                HelpLine(_names(name), summary)
                for commands in modules.values()
                for name, summary in commands.items()
            ],
        )
        for title, modules in GROUPS.items()
    ]
    parts.append(block("Exit codes:", [HelpLine(str(c), text) for c, text in exits.TABLE.items()]))
    parts.append(
        "`penstock COMMAND --help` describes a command.  Every flag can also be given as an\n"
        "environment variable, every command prints JSON with --json."
    )
    return "\n\n".join(parts) + "\n"


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        name, _ = find_command(words[1:])
        if name is None:
            print(overview(), end="")
            return exits.OK if words else exits.USAGE
        words = [*name.split(), "--help"]
    if words[0] in ("-V", "--version"):
        print(f"penstock {__version__}")
        return exits.OK
    name, rest = find_command(words)
    if name is None:
        close = get_close_matches(words[0], ENTRIES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "see penstock --help"
        raise UsageError(f"unknown command {words[0]!r}; {hint}")
    command = load(name)
    parser = parser_of(name, command, dict(os.environ))
    try:
        args = parser.read(rest)
    except SystemExit:  # after --help
        return exits.OK
    return command.run(args, Output(json=args.json))


def _names(command: str) -> str:
    return f"{command}, {ALIASES[command]}" if command in ALIASES else command
