"""`penstock doctor`: one line per check, and recovery of a damaged SQLite store."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.client.errors import Unreachable
from penstock.domain.errors import PenstockError
from penstock.domain.store.finding import Finding, Grade, fail, ok, warn
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Command, flag
from penstock.edge.cli.kit.flags import (
    DEFAULT_SERVER,
    load_settings,
    remote,
    server_flags,
    store_flags,
)
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress

if TYPE_CHECKING:
    from penstock.wiring.maintenance import SalvageReport

MAX_LISTED = 1_000


def salvage(args: Namespace, out: Output) -> int:
    from penstock.wiring.maintenance import salvage as copy

    settings = load_settings(args).settings
    with progress("Salvaging") as advance:
        result = copy(settings, Path(args.salvage), progress=advance)
    if out.json:
        out.record(result)
    else:
        _list(result, out)
    return exits.OK if result.is_complete else exits.REFUSED


def accept_loss(args: Namespace, out: Output) -> None:
    from penstock.wiring.maintenance import accept_loss as accept

    accepted = accept(load_settings(args).settings)
    out.result(
        accepted,
        f"dropped {accepted.commits} commits from byte {accepted.offset} of the log; "
        f"copy of the original log: {accepted.kept}",
    )


def _list(result: SalvageReport, out: Output) -> None:
    for place in result.corrected:
        out.line(f"corrected one flipped bit: {place}")
    if result.lost_log_frames:
        out.line(f"cannot read {result.lost_log_frames} frames of the log")
    for table in result.tables:
        if table.unreadable_pages or table.unreadable_rows:
            out.line(
                f"table {table.table}: copied {table.rows} rows, cannot read "
                f"{table.unreadable_pages} pages and {table.unreadable_rows} rows"
            )
    for message in result.lost_messages[:MAX_LISTED]:
        name = message.id or f"number {message.message_no}"
        out.line(f"lost message {name} of queue {message.queue or '(unknown)'}: {message.reason}")
    hidden = len(result.lost_messages) - MAX_LISTED
    if hidden > 0:
        out.line(f"and {hidden} more messages; --json lists all of them")
    for change in result.repaired:
        out.line(f"repaired: {change}")
    rows = sum(table.rows for table in result.tables)
    verdict = "everything was readable" if result.is_complete else "some data was not readable"
    out.line(f"{result.store}: copied {rows} rows of {len(result.tables)} tables; {verdict}")


MARKS = {Grade.OK: "ok  ", Grade.WARN: "WARN", Grade.FAIL: "FAIL"}


def _run(args: Namespace, out: Output) -> int | None:
    if args.salvage is not None:
        return salvage(args, out)
    if args.accept_loss:
        accept_loss(args, out)
        return None
    is_bad = False
    with progress("Examining"):
        for finding in _findings(args):
            is_bad |= finding.grade is Grade.FAIL
            text = " ".join(finding.text.split())
            out.result(finding, f"{MARKS[finding.grade]}  {finding.name:<18}  {text}")
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
    yield from examine(settings, space=args.space)
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
        _run,
        flag(
            "--salvage",
            "copy all readable data of a damaged SQLite store to a new file or data folder",
            value="NEW_STORE",
        ),
        flag(
            "--accept-loss",
            "drop the part of the log after the damage; a copy of the log is kept beside the store",
        ),
        store_flags,
        server_flags,
        flag(
            "--repair-clock",
            "set the time of a store that is ahead back to the clock; on SQLite only while no "
            "process has the store open",
        ),
        flag(
            "--space",
            "also show how much each queue takes; reads all messages and their history",
        ),
        more="Checks Python, the settings, the data folder and its disk, the store (version, "
        "durability, integrity, schema, clock, counters) and the server. Exits with code 1 if a "
        "check fails; warnings do not count. It can run beside a server, except with --salvage, "
        "--accept-loss or, on SQLite, --repair-clock. --salvage only reads the damaged store, "
        "lists the unreadable data, and exits with code 1 if there is any.",
        examples=(
            "penstock doctor --data ./data",
            "penstock doctor --data ./data --space",
            "penstock doctor --data ./data --repair-clock",
            "penstock doctor --data ./data --salvage ./salvaged",
            "penstock doctor --json | jq 'select(.grade!=\"ok\")'",
        ),
    )
}
