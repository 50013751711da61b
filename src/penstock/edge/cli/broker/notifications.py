"""`penstock notifications`: messages for a set time, found by their tags."""

from __future__ import annotations

from argparse import Namespace
from itertools import islice

from penstock.api.notifications import Notification
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration, instant, remote, server_flags
from penstock.edge.cli.kit.output import Output, shown
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("id", "queue", "state", "due", "kind", "tags", "attempts", "body")
_BODY_CHARS = 60


def _tag_flags(parser: Parser) -> None:
    parser.flag("--queue", value="QUEUE", text="only of this queue; default: of all")
    parser.flag("--tag", value="TAG", text="with this tag, the first or the second")
    parser.flag("--tag1", value="TAG", text="with this first tag")
    parser.flag("--tag2", value="TAG", text="with this second tag")


def _configure_find(parser: Parser) -> None:
    _tag_flags(parser)
    parser.flag(
        "--which",
        value="WHICH",
        text="live (default), future, leased or past",
        choices=["live", "future", "leased", "past"],
        default="live",
    )
    parser.flag("--limit", value="N", text="how many; default 50", type=int, default=50)
    server_flags(parser)


def _find(args: Namespace, out: Output) -> int:
    tags = {"queue": args.queue, "tag": args.tag, "tag1": args.tag1, "tag2": args.tag2}
    with remote(args) as server:
        if args.which == "past":
            page = server.notifications.past(limit=args.limit, **tags)
            found = page.notifications
            while page.next is not None and len(found) < args.limit:  # large bodies end a page
                left = args.limit - len(found)
                page = server.notifications.past(limit=left, cursor=page.next, **tags)
                found += page.notifications
        else:
            pages = server.notifications.find(which=args.which, **tags)
            found = list(islice(pages, args.limit))
    if out.json:
        for one in found:
            out.record(one)
    else:
        out.table(COLUMNS, map(_row, found))
    return exits.OK


def _row(one: Notification) -> tuple[object, ...]:
    body = shown(one.body)
    cut = body if len(body) <= _BODY_CHARS else body[: _BODY_CHARS - 1] + "…"
    due = one.next_due_at or one.due_at
    return one.id, one.queue, one.state, due, one.kind, one.tags, one.attempts, cut


def _configure_record(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.argument("BODY", "what the handler gets: JSON, or a text")
    parser.flag("--due-at", value="INSTANT", text="ISO 8601; UTC unless it says", type=instant)
    parser.flag("--in", value="DURATION", text="after this time", type=duration)
    parser.flag("--kind", value="KIND", text="picks the handler")
    parser.flag("--tag", value="TAG", text="to find it again; at most twice", action="append")
    parser.flag("--user-token", value="TOKEN", text="kept, and handed to the handler")
    parser.flag("--dedup-key", value="KEY", text="recorded once, however often it is tried")
    server_flags(parser)


def _record(args: Namespace, out: Output) -> int:
    delay_ms = getattr(args, "in")
    if (args.due_at is None) == (delay_ms is None):
        raise UsageError("say when: --due-at or --in")
    with remote(args) as server:
        recorded = server.notifications.record(
            args.queue,
            body_of(args.body),
            due_at=args.due_at,
            delay_ms=delay_ms,
            kind=args.kind,
            tags=tuple(args.tag or ()),
            user_token=args.user_token,
            dedup_key=args.dedup_key,
        )
    if out.json:
        out.record(recorded)
    else:
        out.line(recorded.id)
    return exits.OK


def _configure_move(parser: Parser) -> None:
    parser.argument("ID", "id of the notification")
    parser.flag(
        "--due-at",
        value="INSTANT",
        text="ISO 8601; UTC unless it has an offset",
        type=instant,
        required=True,
    )
    server_flags(parser)


def _move(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        moved = server.notifications.move(args.id, args.due_at)
    if out.json:
        out.record(moved)
    else:
        out.line(f"{moved.id} {moved.state}")
    return exits.OK


def _configure_remove(parser: Parser) -> None:
    parser.argument("ID", "ids of notifications; or none, and tags", nargs="*")
    _tag_flags(parser)
    server_flags(parser)


def _remove(args: Namespace, out: Output) -> int:
    tags = {"tag": args.tag, "tag1": args.tag1, "tag2": args.tag2}
    has_tags = any(value is not None for value in tags.values())
    if bool(args.id) == has_tags:
        raise UsageError("name ids, or tags to remove all that have them")
    with remote(args) as server:
        if has_tags:
            count = server.notifications.remove_all(queue=args.queue, **tags)
        else:
            count = len([server.notifications.remove(one) for one in args.id])
    if out.json:
        out.record({"cancelled": count})
    else:
        out.line(f"{count} cancelled")
    return exits.OK


COMMANDS = {
    "notifications": Command(
        _find,
        _configure_find,
        more="At least one tag has to be named. `future` are those in line, due or not.",
        examples=(
            "penstock notifications --tag1 account-7 --tag2 tenant-1",
            "penstock notifications --queue billing --tag2 tenant-1 --which past",
        ),
    ),
    "notifications record": Command(
        _record,
        _configure_record,
        more="Prints the id.",
        examples=(
            "penstock notifications record billing '{\"invoice\": 7}' --in 30d --tag account-7",
        ),
    ),
    "notifications move": Command(
        _move,
        _configure_move,
        examples=("penstock notifications move 0190b5c2-… --due-at 2030-01-01T09:00",),
    ),
    "notifications remove": Command(
        _remove,
        _configure_remove,
        more="One that is being handled is not removed.",
        examples=(
            "penstock notifications remove 0190b5c2-…",
            "penstock notifications remove --queue billing --tag1 account-7 --tag2 tenant-1",
        ),
    ),
}
