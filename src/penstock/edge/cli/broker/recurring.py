"""`penstock recurring`: work that is sent again and again."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from penstock.api.recurring import NewRecurring, Preview, Recurring
from penstock.domain.duration import duration_text
from penstock.domain.schedule.schedule import CatchUp, Overlap
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.application import application, application_flags
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.flags import duration, pair, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("name", "rhythm", "queue", "kind", "next", "last", "fired", "skipped", "paused")


def _named(parser: Parser) -> None:
    parser.argument("NAME", "name of the recurring work")
    application_flags(parser)


def _configure_set(parser: Parser) -> None:
    parser.argument("NAME", "name of the recurring work")
    parser.argument("QUEUE", "where its messages go")
    parser.argument("BODY", "body of each message: JSON, or any other text", nargs="?")
    _rhythm_flags(parser)
    parser.flag("--kind", value="KIND", text="kind of each message")
    parser.flag("--entity-id", value="ID", text="what each message is about")
    parser.flag("--group", value="GROUP", text="group of each message")
    parser.flag("--priority", value="N", text="smaller goes first; default 0", type=int)
    parser.flag("--max-attempts", value="N", text="in place of the queue's limit", type=int)
    parser.flag("--expires-in", value="DURATION", text="how long each is of use", type=duration)
    parser.flag(
        "--attribute",
        value="NAME=TEXT",
        text="an attribute of each message, may be repeated",
        action="append",
        type=pair,
        default=[],
    )
    parser.flag(
        "--catch-up",
        value="POLICY",
        text="missed firings: skip, one for all of them (the default), or all",
        choices=[policy.value for policy in CatchUp],
    )
    parser.flag(
        "--overlap",
        value="POLICY",
        text="while the last one has not ended: allow (the default), skip, wait or replace",
        choices=[policy.value for policy in Overlap],
    )
    server_flags(parser)


def _rhythm_flags(parser: Parser) -> None:
    parser.flag("--cron", value="EXPRESSION", text="five fields, or six with seconds in front")
    parser.flag("--zone", value="ZONE", text="time zone of --cron; default UTC", default="UTC")
    parser.flag("--every", value="DURATION", text="in place of --cron", type=duration)


def _configure_preview(parser: Parser) -> None:
    parser.argument("NAME", "of recurring work; without it a rhythm is tried", nargs="?")
    _rhythm_flags(parser)
    parser.flag("--count", value="N", text="how many; default 10", type=int, default=10)
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with application(args) as app:
        found = app.recurring.list()
    if out.json:
        for one in found:
            out.record(one)
    else:
        out.table(COLUMNS, map(_row, found))
    return exits.OK


def _set(args: Namespace, out: Output) -> int:
    wanted = NewRecurring(
        queue=args.queue,
        cron=args.cron,
        zone=args.zone,
        every_ms=args.every,
        kind=args.kind,
        entity_id=args.entity_id,
        group=args.group,
        max_attempts=args.max_attempts,
        expires_in_ms=args.expires_in,
        attributes=dict(args.attribute),
    )
    if args.body is not None:
        wanted.body = msgspec.Raw(msgspec.json.encode(body_of(args.body)))
    if args.priority is not None:
        wanted.priority = args.priority
    if args.catch_up is not None:
        wanted.catch_up = CatchUp(args.catch_up)
    if args.overlap is not None:
        wanted.overlap = Overlap(args.overlap)
    with remote(args) as server:
        return _show_one(server.recurring.put(args.name, wanted), out)


def _show(args: Namespace, out: Output) -> int:
    with application(args) as app:
        return _show_one(app.recurring.get(args.name), out)


def _pause(args: Namespace, out: Output) -> int:
    with application(args) as app:
        return _show_one(app.recurring.pause(args.name), out)


def _resume(args: Namespace, out: Output) -> int:
    with application(args) as app:
        return _show_one(app.recurring.resume(args.name), out)


def _run(args: Namespace, out: Output) -> int:
    with application(args) as app:
        message_id = app.recurring.run(args.name)
    if out.json:
        out.record({"id": message_id})
    else:
        out.line(message_id)
    return exits.OK


def _remove(args: Namespace, out: Output) -> int:
    with application(args) as app:
        app.recurring.remove(args.name)
    return exits.OK


def _preview(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if args.name is not None:
            zone = server.recurring.get(args.name).zone or "UTC"
            instants = server.recurring.preview(args.name, count=args.count)
        else:
            zone = args.zone
            rhythm = Preview(cron=args.cron, zone=zone, every_ms=args.every, count=args.count)
            instants = server.recurring.preview_rhythm(rhythm)
    for instant in instants:
        if out.json:
            out.record({"at": instant})
        else:
            out.line(_local(instant, zone))
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
        application_flags,
        examples=("penstock recurring", "penstock recurring --store sqlite:///jobs.db"),
    ),
    "recurring set": Command(
        _set,
        _configure_set,
        more="Makes it or changes it; the same again changes nothing, not even the next firing.",
        examples=(
            "penstock recurring set nightly mail '{\"report\": \"all\"}' --cron '30 2 * * *' "
            "--zone Europe/Berlin",
            "penstock recurring set pulse mail --every 5m --overlap skip",
        ),
    ),
    "recurring show": Command(_show, _named, examples=("penstock recurring show nightly",)),
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
        _named,
        more="Prints the id of the message. Its own firings go on as if nothing had happened.",
        examples=("penstock recurring run nightly",),
    ),
    "recurring pause": Command(_pause, _named, examples=("penstock recurring pause nightly",)),
    "recurring resume": Command(
        _resume,
        _named,
        more="Firings that fell into the pause are not caught up.",
        examples=("penstock recurring resume nightly",),
    ),
    "recurring remove": Command(
        _remove,
        _named,
        more="What it has sent stays. If an application declares it, its next worker that starts "
        "makes it again.",
        examples=(
            "penstock recurring remove nightly",
            "penstock recurring remove nightly --store sqlite:///jobs.db",
        ),
    ),
}
