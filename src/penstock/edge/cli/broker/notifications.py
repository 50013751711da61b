"""`penstock notifications`: messages due at a set time, found by their tags."""

from __future__ import annotations

from argparse import Namespace
from itertools import islice

from penstock.api.notifications import ByTags, NewNotification, Notification
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import instant, remote, server_flags
from penstock.edge.cli.kit.output import Output, display
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

_BY_TAGS = RecordFlags(ByTags, "queue tag tag1 tag2")
_OPTIONS = RecordFlags(NewNotification, "due_at delay_ms:in kind tags:tag user_token dedup_key")
COLUMNS = ("id", "queue", "state", "due", "kind", "tags", "attempts", "body")
_BODY_CHARS = 60


def _configure_find(parser: Parser) -> None:
    _BY_TAGS.add(parser)
    parser.flag(
        "--which",
        value="WHICH",
        text="live (default), future, leased or past",
        choices=["live", "future", "leased", "past"],
        default="live",
    )
    parser.flag("--limit", value="N", text="how many at most; default 50", type=int, default=50)
    server_flags(parser)


def _find(args: Namespace, out: Output) -> int:
    tags = _BY_TAGS.values(args)
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
    return out.records(found, COLUMNS, _row)


def _row(one: Notification) -> tuple[object, ...]:
    body = display(one.body)
    cut = body if len(body) <= _BODY_CHARS else body[: _BODY_CHARS - 1] + "…"
    due = one.next_due_at or one.due_at
    return one.id, one.queue, one.state, due, one.kind, one.tags, one.attempts, cut


def _configure_record(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.argument("BODY", "body for the handler: JSON, or any other text")
    _OPTIONS.add(parser)
    server_flags(parser)


def _record(args: Namespace, out: Output) -> int:
    options = _OPTIONS.values(args)
    if ("due_at" in options) == ("delay_ms" in options):
        raise UsageError("give either --due-at or --in")
    with remote(args) as server:
        recorded = server.notifications.record(args.queue, body_of(args.body), **options)
    return out.result(recorded, recorded.id)


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
    return out.result(moved, f"{moved.id} {moved.state}")


def _configure_remove(parser: Parser) -> None:
    parser.argument("ID", "ids of notifications; without ids, all with the given tags", nargs="*")
    _BY_TAGS.add(parser)
    server_flags(parser)


def _remove(args: Namespace, out: Output) -> int:
    tags = {"tag": args.tag, "tag1": args.tag1, "tag2": args.tag2}
    has_tags = any(value is not None for value in tags.values())
    if bool(args.id) == has_tags:
        raise UsageError("give either ids, or tags to remove all that have them")
    with remote(args) as server:
        if has_tags:
            count = server.notifications.remove_all(queue=args.queue, **tags)
        else:
            count = len([server.notifications.remove(one) for one in args.id])
    return out.result({"cancelled": count}, f"{count} cancelled")


COMMANDS = {
    "notifications": Command(
        _find,
        _configure_find,
        more="At least one tag is required. `future` selects unclaimed ones, due or not; `live` "
        "those "
        "and leased ones.",
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
        more="A notification that is being handled is not removed.",
        examples=(
            "penstock notifications remove 0190b5c2-…",
            "penstock notifications remove --queue billing --tag1 account-7 --tag2 tenant-1",
        ),
    ),
}
