"""`penstock notifications`: messages due at a set time, found by their tags."""

from __future__ import annotations

from argparse import Namespace
from itertools import islice
from typing import TYPE_CHECKING

from penstock.api.notifications import ByTags, NewNotification
from penstock.client.resources.resource import items_of
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.command import ServerCommand, argument, flag, limit_flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import instant
from penstock.edge.cli.kit.output import Output, cut, display
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_BY_TAGS = RecordFlags(ByTags, "queue tag tag1 tag2")
_OPTIONS = RecordFlags(NewNotification, "due_at delay_ms:in kind tags:tag user_token dedup_key")
_NOTIFICATION = View(
    "id queue state due kind tags attempts body",
    due=lambda one: one.next_due_at or one.due_at,
    body=lambda one: cut(display(one.body)),
)
_ID = argument("ID", "id of the notification")


def _find(server: Remote, args: Namespace, out: Output) -> None:
    tags = _BY_TAGS.values(args)
    if args.which == "past":
        found = items_of(
            lambda cursor: server.notifications.past(limit=args.limit, cursor=cursor, **tags),
            lambda page: page.notifications,
        )
    else:
        found = server.notifications.find(which=args.which, **tags)
    out.records(islice(found, args.limit), _NOTIFICATION)


def _record(server: Remote, args: Namespace, out: Output) -> None:
    options = _OPTIONS.values(args)
    if ("due_at" in options) == ("delay_ms" in options):
        raise UsageError("give either --due-at or --in")
    recorded = server.notifications.record(args.queue, body_of(args.body), **options)
    out.result(recorded, recorded.id)


def _move(server: Remote, args: Namespace, out: Output) -> None:
    moved = server.notifications.move(args.id, args.due_at)
    out.result(moved, f"{moved.id} {moved.state}")


def _remove(server: Remote, args: Namespace, out: Output) -> None:
    tags = {"tag": args.tag, "tag1": args.tag1, "tag2": args.tag2}
    has_tags = any(value is not None for value in tags.values())
    if bool(args.id) == has_tags:
        raise UsageError("give either ids, or tags to remove all that have them")
    if has_tags:
        count = server.notifications.remove_all(queue=args.queue, **tags)
    else:
        count = len([server.notifications.remove(one) for one in args.id])
    out.result({"cancelled": count}, f"{count} cancelled")


COMMANDS = {
    "notifications": ServerCommand(
        _find,
        _BY_TAGS.add,
        flag(
            "--which",
            "live (default), future, leased or past",
            choices=["live", "future", "leased", "past"],
            default="live",
        ),
        limit_flag(50),
        more="At least one tag is required. `future` selects unclaimed ones, due or not; `live` "
        "those and leased ones.",
        examples=(
            "penstock notifications --tag1 account-7 --tag2 tenant-1",
            "penstock notifications --queue billing --tag2 tenant-1 --which past",
        ),
    ),
    "notifications record": ServerCommand(
        _record,
        argument("QUEUE", "name of the queue"),
        argument("BODY", "body for the handler: JSON, or any other text"),
        _OPTIONS.add,
        more="Prints the id.",
        examples=(
            "penstock notifications record billing '{\"invoice\": 7}' --in 30d --tag account-7",
        ),
    ),
    "notifications move": ServerCommand(
        _move,
        _ID,
        flag("--due-at", "ISO 8601; UTC unless it has an offset", type=instant, required=True),
        examples=("penstock notifications move 0190b5c2-… --due-at 2030-01-01T09:00",),
    ),
    "notifications remove": ServerCommand(
        _remove,
        argument("ID", "ids of notifications; without ids, all with the given tags", nargs="*"),
        _BY_TAGS.add,
        more="A notification that is being handled is not removed.",
        examples=(
            "penstock notifications remove 0190b5c2-…",
            "penstock notifications remove --queue billing --tag1 account-7 --tag2 tenant-1",
        ),
    ),
}
