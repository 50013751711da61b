"""`penstock recurring`: messages sent on a schedule."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import msgspec

from penstock.api.recurring import NewRecurring, Preview, Recurring
from penstock.domain.duration import duration_text
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.command import AppCommand, ServerCommand, argument, listing
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.remote.server import Remote

_OPTIONS = RecordFlags(
    NewRecurring,
    "cron zone every_ms kind entity_id group priority max_attempts expires_in_ms "
    "attributes:attribute catch_up overlap",
)
_PREVIEW = RecordFlags(Preview, "cron zone every_ms count")
_NAME = argument("NAME", "name of the recurring work")


def _set(server: Remote, args: Namespace, out: Output) -> None:
    wanted = NewRecurring(queue=args.queue, **_OPTIONS.values(args))
    if args.body is not None:
        wanted.body = msgspec.Raw(msgspec.json.encode(body_of(args.body)))
    _show_one(server.recurring.put(args.name, wanted), out)


def _run(app: Penstock, args: Namespace, out: Output) -> None:
    message_id = app.recurring.run(args.name)
    out.result({"id": message_id}, message_id)


def _preview(server: Remote, args: Namespace, out: Output) -> None:
    preview = Preview(**_PREVIEW.values(args))
    if args.name is not None:
        zone = server.recurring.get(args.name).zone or "UTC"
        instants = server.recurring.preview(args.name, count=preview.count)
    else:
        zone = preview.zone
        instants = server.recurring.preview_rhythm(preview)
    for instant in instants:
        out.result({"at": instant}, _local(instant, zone))


def _local(instant: datetime, zone: str) -> str:
    return instant.astimezone(ZoneInfo(zone)).isoformat(sep=" ", timespec="seconds")


def _show_one(one: Recurring, out: Output) -> None:
    out.show(one, (_RECURRING + _MORE).lines(one))


def _rhythm(one: Recurring) -> str:
    return f"every {duration_text(one.every_ms)}" if one.every_ms else f"{one.cron} {one.zone}"


_RECURRING = View("name rhythm queue kind next_at last_at fired skipped is_paused", rhythm=_rhythm)
_MORE = View("catch_up overlap body last_id:last_message last_error owner:declared_by")


COMMANDS = {
    "recurring": AppCommand(
        listing(_RECURRING, lambda app, args: app.recurring.list()),
        examples=("penstock recurring", "penstock recurring --store sqlite:///jobs.db"),
    ),
    "recurring set": ServerCommand(
        _set,
        _NAME,
        argument("QUEUE", "the queue that its messages are sent to"),
        argument("BODY", "body of each message: JSON, or any other text", nargs="?"),
        _OPTIONS.add,
        more="Repeating the command with the same values changes nothing, not even the next "
        "firing.",
        examples=(
            "penstock recurring set nightly mail '{\"report\": \"all\"}' --cron '30 2 * * *' "
            "--zone Europe/Berlin",
            "penstock recurring set pulse mail --every 5m --overlap skip",
        ),
    ),
    "recurring show": AppCommand(
        lambda app, args, out: _show_one(app.recurring.get(args.name), out),
        _NAME,
        examples=("penstock recurring show nightly",),
    ),
    "recurring preview": ServerCommand(
        _preview,
        argument(
            "NAME", "name of the recurring work; default: preview --cron or --every", nargs="?"
        ),
        _PREVIEW.add,
        examples=(
            "penstock recurring preview nightly --count 3",
            "penstock recurring preview --cron '30 2 * * *' --zone Europe/Berlin",
        ),
    ),
    "recurring run": AppCommand(
        _run,
        _NAME,
        more="Prints the id of the message. The schedule is not affected.",
        examples=("penstock recurring run nightly",),
    ),
    "recurring pause": AppCommand(
        lambda app, args, out: _show_one(app.recurring.pause(args.name), out),
        _NAME,
        examples=("penstock recurring pause nightly",),
    ),
    "recurring resume": AppCommand(
        lambda app, args, out: _show_one(app.recurring.resume(args.name), out),
        _NAME,
        more="Firings missed during the pause are not caught up.",
        examples=("penstock recurring resume nightly",),
    ),
    "recurring remove": AppCommand(
        lambda app, args, out: app.recurring.remove(args.name),
        _NAME,
        more="Messages already sent stay. If an application declares it, the next worker that "
        "starts creates it again.",
        examples=(
            "penstock recurring remove nightly",
            "penstock recurring remove nightly --store sqlite:///jobs.db",
        ),
    ),
}
