"""`penstock doctor --salvage` and `--accept-loss`: recovery of a damaged SQLite store."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import load_settings
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


def accept_loss(args: Namespace, out: Output) -> int:
    from penstock.wiring.maintenance import accept_loss as accept

    accepted = accept(load_settings(args).settings)
    return out.result(
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
