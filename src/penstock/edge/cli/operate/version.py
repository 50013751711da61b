"""`penstock version`"""

from __future__ import annotations

import platform
from argparse import Namespace

from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command
from penstock.version import __version__


def configure(parser: Parser) -> None:
    pass


def run(args: Namespace, out: Output) -> int:
    import apsw

    facts = {
        "penstock": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    text = f"penstock {__version__} (Python {facts['python']}, SQLite {facts['sqlite']})"
    return out.result(facts, text)


COMMANDS = {"version": Command(run, configure, examples=("penstock version --json",))}
