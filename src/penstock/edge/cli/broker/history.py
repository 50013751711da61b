"""`penstock history`: finished messages, newest first."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice

from penstock.api.history import Ending
from penstock.client.remote.server import Remote
from penstock.domain.duration import duration_text
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration, instant, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("finished", "queue", "id", "kind", "outcome", "attempts", "took", "reason or error")
OUTCOMES = [str(state) for state in (State.DONE, State.DEAD, State.CANCELLED)]
PAGE = 500


def configure(parser: Parser) -> None:
    parser.flag("--queue", value="QUEUE", text="only of this queue")
    parser.flag("--kind", value="KIND", text="only of this kind")
    parser.flag("--tag", value="TAG", text="only with this tag")
    parser.flag("--entity-id", value="ID", text="only about this")
    parser.flag("--outcome", value="OUTCOME", text="only done, dead or cancelled", choices=OUTCOMES)
    parser.flag("--from", value="INSTANT", text="finished at or after", type=instant)
    parser.flag("--to", value="INSTANT", text="finished before", type=instant)
    parser.flag("--since", value="DURATION", text="finished within this time", type=duration)
    parser.flag("--limit", value="N", text="how many; default 50", type=int, default=50)
    server_flags(parser)


def run(args: Namespace, out: Output) -> int:
    begin = getattr(args, "from")
    if begin is not None and args.since is not None:
        raise UsageError("--from and --since exclude each other")
    if args.limit < 1:
        raise UsageError("--limit is at least 1")
    with remote(args) as server:
        if args.since is not None:
            begin = _before(server, args.since)
        found = server.history.search(
            page_size=min(args.limit, PAGE),
            queue=args.queue,
            kind=args.kind,
            tag=args.tag,
            entity_id=args.entity_id,
            outcome=None if args.outcome is None else State(args.outcome),
            from_at=begin,
            to_at=args.to,
        )
        show(islice(found, args.limit), out)
    return exits.OK


def show(endings: Iterable[Ending], out: Output) -> None:
    if out.json:
        for ending in endings:
            out.record(ending)
    else:
        out.table(COLUMNS, map(row, endings))


def row(ending: Ending) -> tuple[object, ...]:
    why = ending.reason or ending.last_error or ""
    return (
        ending.finished_at,
        ending.queue,
        ending.id,
        ending.kind,
        ending.outcome,
        ending.attempts,
        _took(ending),
        why if len(why) <= 60 else why[:59] + "…",
    )


def _took(ending: Ending) -> str:
    """From its sending to its end."""
    took = int((ending.finished_at - ending.sent_at) / timedelta(milliseconds=1))
    return duration_text(took if took < 10_000 else took // 1000 * 1000)


def _before(server: Remote, ms: int) -> datetime:
    # The server's clock counts: history is told in its time.
    return server.stats().now - timedelta(milliseconds=ms)


COMMANDS = {
    "history": Command(
        run,
        configure,
        examples=(
            "penstock history --queue mail --outcome dead",
            "penstock history --since 1h --limit 1000 --json",
            "penstock history --from 2030-01-01 --to 2030-01-02",
        ),
    )
}
