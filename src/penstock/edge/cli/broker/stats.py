"""`penstock stats`, `tail` and `history`: counts, and finished messages.

`tail` polls the history.  Concurrent writes may become visible slightly out of order, so each poll
starts a few seconds earlier and skips endings that were already shown.
"""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from penstock.api.history import Ending, SearchHistory
from penstock.api.queues import Counts
from penstock.domain.duration import duration_text
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.broker.queues import show
from penstock.edge.cli.kit.command import ServerCommand, argument, flag, limit_flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration
from penstock.edge.cli.kit.output import Output, cut, display, fields_of
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote


def _stats(server: Remote, args: Namespace, out: Output) -> None:
    if args.queue is not None:
        return show(server.queues.get(args.queue), out)
    stats = server.stats()
    facts = View("backend:store version now:time queues waiting_claims").lines(stats)
    return out.show(stats, facts, fields_of(stats.counts), fields_of(stats.totals, "total "))


OUTCOMES = [str(state) for state in (State.DONE, State.DEAD, State.CANCELLED)]
PAGE = 500
_FILTERS = RecordFlags(SearchHistory, "queue kind tag entity_id from_:from to")


def _history(server: Remote, args: Namespace, out: Output) -> None:
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
    out.records(islice(found, args.limit), _ENDING)


def _took(ending: Ending) -> str:
    """The time from send to end."""
    took = int((ending.finished_at - ending.sent_at) / timedelta(milliseconds=1))
    return duration_text(took if took < 10_000 else took // 1000 * 1000)


_ENDING = View(
    "finished_at queue id kind outcome attempts took why:reason_or_error",
    took=_took,
    why=lambda ending: cut(ending.error_line or ending.reason or ""),
)
OVERLAP = timedelta(seconds=5)


def _tail(server: Remote, args: Namespace, out: Output) -> None:
    if (args.queue is None) != args.all:
        raise UsageError("give a queue or --all")
    follower = Follower(server, args.queue)
    for ending in follower.latest(args.lines):
        _show_ending(ending, out)
    pause = threading.Event()
    before: Counts | None = None
    while True:
        counts = follower.counts()
        if counts != before:
            _show_counts(counts, out)
            before = counts
        if args.once:
            return
        pause.wait(args.every / 1000)
        for ending in follower.new_endings():
            _show_ending(ending, out)


class Follower:
    def __init__(self, server: Remote, queue: str | None) -> None:
        self._server = server
        self._queue = queue
        self._seen: set[tuple[str, datetime, str]] = set()
        self._latest: datetime | None = None

    def latest(self, count: int) -> list[Ending]:
        """The latest `count` endings, oldest first; later ones come from `new_endings`."""
        found: list[Ending] = []
        for ending in self._server.history.search(page_size=100, queue=self._queue):
            # Reads more than it returns: later polls overlap and must recognise them.
            is_old = bool(found) and ending.finished_at < found[0].finished_at - OVERLAP
            if len(found) >= count and is_old:
                break
            found.append(ending)
        list(self._unseen(reversed(found)))
        if self._latest is None:
            self._latest = self._server.stats().now
        return found[:count][::-1]

    def new_endings(self) -> list[Ending]:
        """Endings since the last poll, oldest first."""
        assert self._latest is not None
        begin = self._latest - OVERLAP
        found = list(self._server.history.search(page_size=500, queue=self._queue, from_at=begin))
        new = list(self._unseen(reversed(found)))
        self._seen = {key for key in self._seen if key[1] >= begin - OVERLAP}
        return new

    def counts(self) -> Counts:
        if self._queue is None:
            return self._server.stats().counts
        return self._server.queues.get(self._queue).counts

    def _unseen(self, endings: Iterator[Ending]) -> Iterator[Ending]:
        for ending in endings:
            key = (ending.id, ending.finished_at, ending.outcome)
            if key not in self._seen:
                self._seen.add(key)
                self._latest = max(self._latest or ending.finished_at, ending.finished_at)
                yield ending


def _show_ending(ending: Ending, out: Output) -> None:
    facts = [ending.finished_at, ending.queue, ending.outcome, ending.id, ending.kind or "-"]
    facts += [f"attempts={ending.attempts}", ending.reason or "", ending.last_error or ""]
    out.result({"ending": ending}, "  ".join(display(fact) for fact in facts if fact != ""))


def _show_counts(counts: Counts, out: Output) -> None:
    values = msgspec.structs.asdict(counts)
    text = ", ".join(f"{value} {name}" for name, value in values.items())
    out.result({"counts": values}, f"-- {text}")


COMMANDS = {
    "stats": ServerCommand(
        _stats,
        argument("QUEUE", "only this queue", nargs="?"),
        more="For the whole server, or for one queue.",
        examples=("penstock stats", "penstock stats mail --json"),
    ),
    "history": ServerCommand(
        _history,
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
    ),
    "tail": ServerCommand(
        _tail,
        argument("QUEUE", "name of the queue, unless --all is given", nargs="?"),
        flag("--all", "follow all queues"),
        flag("-n --lines", "number of past endings to show first", type=int, default=10),
        flag("--every", "polling interval", type=duration, default=1000),
        flag("--once", "show the past endings and exit"),
        more="Runs until Ctrl-C.",
        examples=("penstock tail mail", "penstock tail --all --json | jq .ending.outcome"),
    ),
}
