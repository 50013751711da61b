"""`penstock doctor`: one line per check; exits with code 1 if one fails."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator

from penstock.client.errors import Unreachable
from penstock.domain.errors import PenstockError
from penstock.domain.store.finding import Finding, Grade, fail, ok, warn
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import (
    DEFAULT_SERVER,
    load_settings,
    remote,
    server_flags,
    store_flags,
)
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.operate.damage import accept_loss, salvage
from penstock.edge.cli.registry import Command

MARKS = {Grade.OK: "ok  ", Grade.WARN: "WARN", Grade.FAIL: "FAIL"}


def configure(parser: Parser) -> None:
    parser.flag(
        "--salvage",
        value="NEW_STORE",
        text="copy all readable data of a damaged SQLite store to a new file or data folder",
    )
    parser.flag(
        "--accept-loss",
        text="drop the part of the log after the damage; a copy of the log is kept beside the "
        "store",
    )
    store_flags(parser)
    server_flags(parser)
    parser.flag(
        "--repair-clock",
        text="set the time of a store that is ahead back to the clock; on SQLite only while no "
        "process has the store open",
    )


def run(args: Namespace, out: Output) -> int:
    if args.salvage is not None:
        return salvage(args, out)
    if args.accept_loss:
        return accept_loss(args, out)
    is_bad = False
    with progress("Examining"):
        for finding in _findings(args):
            is_bad |= finding.grade is Grade.FAIL
            text = " ".join(finding.text.split())
            if out.json:
                out.record(finding)
            else:
                out.line(f"{MARKS[finding.grade]}  {finding.name:<18}  {text}")
    return exits.REFUSED if is_bad else exits.OK


def _findings(args: Namespace) -> Iterator[Finding]:
    from penstock.wiring.maintenance import examine

    try:
        settings = load_settings(args).settings
    except PenstockError as error:
        yield fail("settings", str(error))
        return
    yield ok("settings", "all values are valid")
    if args.repair_clock:
        from penstock.wiring.maintenance import repair_clock

        yield repair_clock(settings)
    yield from examine(settings)
    yield _server(args)


def _server(args: Namespace) -> Finding:
    try:
        with remote(args) as server:
            readiness = server.readiness()
    except Unreachable as error:
        # Unless a server was named, none needs to run.
        is_named = args.server != DEFAULT_SERVER or "PENSTOCK_SERVER" in os.environ
        return (fail if is_named else warn)("server", str(error))
    if readiness is not None and readiness.reason is None:
        return ok("server", f"{args.server} is ready")
    if readiness is not None:
        return fail("server", f"{args.server} is {readiness.status}: {readiness.reason}")
    return fail("server", f"{args.server} runs, but its store does not answer")


COMMANDS = {
    "doctor": Command(
        run,
        configure,
        more="Checks Python, the settings, the data folder and its disk, the store (version, "
        "durability, integrity, schema, clock, counters) and the server. Exits with code 1 if a "
        "check fails; warnings do not count. It can run beside a server, except with --salvage, "
        "--accept-loss or, on SQLite, --repair-clock. --salvage only reads the damaged store, "
        "lists the unreadable data, and exits with code 1 if there is any.",
        examples=(
            "penstock doctor --data ./data",
            "penstock doctor --data ./data --repair-clock",
            "penstock doctor --data ./data --salvage ./salvaged",
            "penstock doctor --json | jq 'select(.grade!=\"ok\")'",
        ),
    )
}
