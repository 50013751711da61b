"""`penstock recurring`: messages sent on a schedule."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from penstock.api.recurring import NewRecurring, Preview, Recurring
from penstock.domain.duration import duration_text
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.application import app_flags, open_app
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

_OPTIONS = RecordFlags(
    NewRecurring,
    "cron zone every_ms kind entity_id group priority max_attempts expires_in_ms "
    "attributes:attribute catch_up overlap",
)
_PREVIEW = RecordFlags(Preview, "cron zone every_ms count")
COLUMNS = ("name", "rhythm", "queue", "kind", "next", "last", "fired", "skipped", "paused")


def _configure_one(parser: Parser) -> None:
    parser.argument("NAME", "name of the recurring work")
    app_flags(parser)


def _configure_set(parser: Parser) -> None:
    parser.argument("NAME", "name of the recurring work")
    parser.argument("QUEUE", "the queue that its messages are sent to")
    parser.argument("BODY", "body of each message: JSON, or any other text", nargs="?")
    _OPTIONS.add(parser)
    server_flags(parser)


def _configure_preview(parser: Parser) -> None:
    parser.argument(
        "NAME", "name of recurring work; without it, a schedule is previewed", nargs="?"
    )
    _PREVIEW.add(parser)
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        return out.records(app.recurring.list(), COLUMNS, _row)


def _set(args: Namespace, out: Output) -> int:
    wanted = NewRecurring(queue=args.queue, **_OPTIONS.values(args))
    if args.body is not None:
        wanted.body = msgspec.Raw(msgspec.json.encode(body_of(args.body)))
    with remote(args) as server:
        return _show_one(server.recurring.put(args.name, wanted), out)


def _show(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        return _show_one(app.recurring.get(args.name), out)


def _pause(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        return _show_one(app.recurring.pause(args.name), out)


def _resume(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        return _show_one(app.recurring.resume(args.name), out)


def _run(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        message_id = app.recurring.run(args.name)
    return out.result({"id": message_id}, message_id)


def _remove(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        app.recurring.remove(args.name)
    return exits.OK


def _preview(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        preview = Preview(**_PREVIEW.values(args))
        if args.name is not None:
            zone = server.recurring.get(args.name).zone or "UTC"
            instants = server.recurring.preview(args.name, count=preview.count)
        else:
            zone = preview.zone
            instants = server.recurring.preview_rhythm(preview)
    for instant in instants:
        out.result({"at": instant}, _local(instant, zone))
    return exits.OK


def _local(instant: datetime, zone: str) -> str:
    return instant.astimezone(ZoneInfo(zone)).isoformat(sep=" ", timespec="seconds")


def _show_one(one: Recurring, out: Output) -> int:
    if out.json:
        out.record(one)
        return exits.OK
    out.fields(
        [
            *zip(COLUMNS, _row(one), strict=True),
            ("catch up", one.catch_up),
            ("overlap", one.overlap),
            ("body", one.body),
            ("last message", one.last_id),
            ("last error", one.last_error),
            ("declared by", one.owner),
        ]
    )
    return exits.OK


def _row(one: Recurring) -> tuple[object, ...]:
    rhythm = f"every {duration_text(one.every_ms)}" if one.every_ms else f"{one.cron} {one.zone}"
    when = (one.next_at, one.last_at)
    return one.name, rhythm, one.queue, one.kind, *when, one.fired, one.skipped, one.is_paused


COMMANDS = {
    "recurring": Command(
        _list,
        app_flags,
        examples=("penstock recurring", "penstock recurring --store sqlite:///jobs.db"),
    ),
    "recurring set": Command(
        _set,
        _configure_set,
        more="Repeating the command with the same values changes nothing, not even the next "
        "firing.",
        examples=(
            "penstock recurring set nightly mail '{\"report\": \"all\"}' --cron '30 2 * * *' "
            "--zone Europe/Berlin",
            "penstock recurring set pulse mail --every 5m --overlap skip",
        ),
    ),
    "recurring show": Command(_show, _configure_one, examples=("penstock recurring show nightly",)),
    "recurring preview": Command(
        _preview,
        _configure_preview,
        examples=(
            "penstock recurring preview nightly --count 3",
            "penstock recurring preview --cron '30 2 * * *' --zone Europe/Berlin",
        ),
    ),
    "recurring run": Command(
        _run,
        _configure_one,
        more="Prints the id of the message. The schedule is not affected.",
        examples=("penstock recurring run nightly",),
    ),
    "recurring pause": Command(
        _pause, _configure_one, examples=("penstock recurring pause nightly",)
    ),
    "recurring resume": Command(
        _resume,
        _configure_one,
        more="Firings missed during the pause are not caught up.",
        examples=("penstock recurring resume nightly",),
    ),
    "recurring remove": Command(
        _remove,
        _configure_one,
        more="Messages already sent stay. If an application declares it, the next worker that "
        "starts creates it again.",
        examples=(
            "penstock recurring remove nightly",
            "penstock recurring remove nightly --store sqlite:///jobs.db",
        ),
    ),
}
