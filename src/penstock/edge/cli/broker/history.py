"""`penstock history`: finished messages, newest first."""

from __future__ import annotations

from argparse import Namespace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from penstock.api.history import Ending, SearchHistory
from penstock.domain.duration import duration_text
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.kit.command import ServerCommand, flag, limit_flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration
from penstock.edge.cli.kit.output import Output, cut
from penstock.edge.cli.kit.record_flags import RecordFlags

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

COLUMNS = ("finished", "queue", "id", "kind", "outcome", "attempts", "took", "reason or error")
OUTCOMES = [str(state) for state in (State.DONE, State.DEAD, State.CANCELLED)]
PAGE = 500
_FILTERS = RecordFlags(SearchHistory, "queue kind tag entity_id from_:from to")


def _run(server: Remote, args: Namespace, out: Output) -> None:
    filters = _FILTERS.values(args)
    begin, end = filters.pop("from_", None), filters.pop("to", None)
    if begin is not None and args.since is not None:
        raise UsageError("--from and --since exclude each other")
    if args.limit < 1:
        raise UsageError("--limit must be at least 1")
    if args.since is not None:  # by the server's clock, which the history uses
        begin = server.stats().now - timedelta(milliseconds=args.since)
    found = server.history.search(
        page_size=min(args.limit, PAGE),
        outcome=None if args.outcome is None else State(args.outcome),
        from_at=begin,
        to_at=end,
        **filters,
    )
    out.records(islice(found, args.limit), COLUMNS, _row)


def _row(ending: Ending) -> tuple[object, ...]:
    return (
        ending.finished_at,
        ending.queue,
        ending.id,
        ending.kind,
        ending.outcome,
        ending.attempts,
        _took(ending),
        cut(ending.reason or ending.last_error or ""),
    )


def _took(ending: Ending) -> str:
    """The time from send to end."""
    took = int((ending.finished_at - ending.sent_at) / timedelta(milliseconds=1))
    return duration_text(took if took < 10_000 else took // 1000 * 1000)


COMMANDS = {
    "history": ServerCommand(
        _run,
        _FILTERS.add,
        flag(
            "--outcome",
            "only messages that ended in this state: done, dead or cancelled",
            choices=OUTCOMES,
        ),
        flag("--since", "only messages that finished this recently", type=duration),
        limit_flag(50),
        examples=(
            "penstock history --queue mail --outcome dead",
            "penstock history --since 1h --limit 1000 --json",
            "penstock history --from 2030-01-01 --to 2030-01-02",
        ),
    )
}
