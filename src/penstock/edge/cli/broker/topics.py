"""`penstock topics`: topics, their subscriptions, and publishing by hand."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.topics import Subscription, Topic
from penstock.domain.topic import Dispatch
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

_SUBSCRIPTION = ("subscription", "queue", "kinds", "dispatch", "since")


def _configure_list(parser: Parser) -> None:
    parser.flag("--prefix", value="TEXT", text="only topics whose names begin like this")
    parser.flag("--limit", value="N", text="how many; default 100", type=int, default=100)
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        page = server.topics.page(prefix=args.prefix or "", limit=args.limit)
    if out.json:
        for topic in page.topics:
            out.record(topic)
    else:
        rows = [(t.name, t.published, t.unmatched, t.created_at) for t in page.topics]
        out.table(("topic", "published", "unmatched", "since"), rows)
    return exits.OK


def _configure_one(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic")
    server_flags(parser)


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        topic = server.topics.get(args.topic)
    return _shown(topic, out)


def _create(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        topic = server.topics.put(args.topic)
    return _shown(topic, out)


def _shown(topic: Topic, out: Output) -> int:
    if out.json:
        out.record(topic)
        return exits.OK
    out.fields(
        [
            ("topic", topic.name),
            ("since", topic.created_at),
            ("published", topic.published),
            ("unmatched", topic.unmatched),
        ]
    )
    if topic.subscriptions:
        out.line()
        out.table(_SUBSCRIPTION, map(_row, topic.subscriptions))
    return exits.OK


def _row(s: Subscription) -> tuple[object, ...]:
    return s.name, s.queue, s.kinds or "all", s.dispatch, s.created_at


def _configure_delete(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic")
    parser.flag("--force", text="with its subscriptions; their queues stay", action="store_true")
    server_flags(parser)


def _delete(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        server.topics.remove(args.topic, force=args.force)
    exits.note(f"topic {args.topic} is gone")
    return exits.OK


def _configure_subscribe(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic; made if it is not there")
    parser.argument("NAME", "name of the subscription; its queue is TOPIC.NAME")
    parser.flag(
        "--kind",
        value="PATTERN",
        text="only events of these kinds, such as order.*; may be repeated; default: all",
        action="append",
        default=[],
    )
    parser.flag(
        "--dispatch",
        value="HOW",
        text="shared (default): any worker; sticky: the worker that published",
        choices=[str(how) for how in Dispatch],
        default=str(Dispatch.SHARED),
    )
    server_flags(parser)


def _subscribe(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        made = server.topics.subscribe(
            args.topic, args.name, kinds=args.kind, dispatch=args.dispatch
        )
    if out.json:
        out.record(made)
    else:
        out.fields(zip(_SUBSCRIPTION, _row(made), strict=True))
    return exits.OK


def _configure_unsubscribe(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic")
    parser.argument("NAME", "name of the subscription")
    parser.flag(
        "--with-queue",
        text="remove its queue too, with all that it holds; default: the queue stays",
        action="store_true",
    )
    server_flags(parser)


def _unsubscribe(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        server.topics.unsubscribe(args.topic, args.name, with_queue=args.with_queue)
    queue = "gone as well" if args.with_queue else "still there"
    exits.note(f"no more events for {args.name}; its queue is {queue}")
    return exits.OK


def _configure_publish(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic")
    parser.argument("BODY", "the event as JSON, or a text")
    parser.flag("--kind", value="KIND", text="what kind of event it is")
    parser.flag("--tag", value="TAG", text="for searching; at most twice", action="append")
    parser.flag("--group", value="GROUP", text="events of one group stay in order")
    parser.flag("--dedup-key", value="KEY", text="published once, however often it is tried")
    server_flags(parser)


def _publish(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        published = server.topics.publish(
            args.topic,
            body_of(args.body),
            kind=args.kind,
            tags=tuple(args.tag or ()),
            group=args.group,
            dedup_key=args.dedup_key,
        )
    if out.json:
        out.record(published)
    else:
        out.line(published.id)
        exits.note(f"{published.messages} messages; {published.duplicates} were there already")
    return exits.OK


COMMANDS = {
    "topics": Command(
        _list, _configure_list, examples=("penstock topics", "penstock topics --json")
    ),
    "topics show": Command(_show, _configure_one, examples=("penstock topics show orders",)),
    "topics create": Command(_create, _configure_one, examples=("penstock topics create orders",)),
    "topics delete": Command(
        _delete, _configure_delete, examples=("penstock topics delete orders --force",)
    ),
    "topics subscribe": Command(
        _subscribe,
        _configure_subscribe,
        more="It gets what is published from now on. The queue is an ordinary one: "
        "`penstock queues set` changes its retries and its dead-letter queue.",
        examples=(
            "penstock topics subscribe orders mailer",
            "penstock topics subscribe orders audit --kind 'order.*' --kind 'invoice.*'",
        ),
    ),
    "topics unsubscribe": Command(
        _unsubscribe,
        _configure_unsubscribe,
        examples=("penstock topics unsubscribe orders mailer --with-queue",),
    ),
    "topics publish": Command(
        _publish,
        _configure_publish,
        more="Prints the id of the event.",
        examples=("penstock topics publish orders '{\"order\": 7}' --kind order.placed",),
    ),
}
