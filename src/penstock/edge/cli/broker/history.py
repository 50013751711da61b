"""`penstock history`: finished messages, newest first."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timedelta
from itertools import islice

from penstock.api.history import Ending, SearchHistory
from penstock.client.remote.server import Remote
from penstock.domain.duration import duration_text
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

COLUMNS = ("finished", "queue", "id", "kind", "outcome", "attempts", "took", "reason or error")
OUTCOMES = [str(state) for state in (State.DONE, State.DEAD, State.CANCELLED)]
PAGE = 500
_FILTERS = RecordFlags(SearchHistory, "queue kind tag entity_id from_:from to")


def configure(parser: Parser) -> None:
    _FILTERS.add(parser)
    parser.flag(
        "--outcome",
        value="OUTCOME",
        text="only messages that ended in this state: done, dead or cancelled",
        choices=OUTCOMES,
    )
    parser.flag(
        "--since", value="DURATION", text="only messages that finished this recently", type=duration
    )
    parser.flag("--limit", value="N", text="how many at most; default 50", type=int, default=50)
    server_flags(parser)


def run(args: Namespace, out: Output) -> int:
    filters = _FILTERS.values(args)
    begin, end = filters.pop("from_", None), filters.pop("to", None)
    if begin is not None and args.since is not None:
        raise UsageError("--from and --since exclude each other")
    if args.limit < 1:
        raise UsageError("--limit must be at least 1")
    with remote(args) as server:
        if args.since is not None:
            begin = _before(server, args.since)
        found = server.history.search(
            page_size=min(args.limit, PAGE),
            outcome=None if args.outcome is None else State(args.outcome),
            from_at=begin,
            to_at=end,
            **filters,
        )
        return out.records(islice(found, args.limit), COLUMNS, row)


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
    """The time from send to end."""
    took = int((ending.finished_at - ending.sent_at) / timedelta(milliseconds=1))
    return duration_text(took if took < 10_000 else took // 1000 * 1000)


def _before(server: Remote, ms: int) -> datetime:
    # By the server's clock, which the history uses.
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
