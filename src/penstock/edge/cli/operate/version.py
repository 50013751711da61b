"""`penstock version`"""

from __future__ import annotations

import platform
from argparse import Namespace

from penstock.edge.cli.kit.command import Command
from penstock.edge.cli.kit.output import Output
from penstock.version import __version__


def _run(args: Namespace, out: Output) -> None:
    import apsw

    facts = {
        "penstock": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    text = f"penstock {__version__} (Python {facts['python']}, SQLite {facts['sqlite']})"
    out.result(facts, text)


COMMANDS = {"version": Command(_run, examples=("penstock version --json",))}
