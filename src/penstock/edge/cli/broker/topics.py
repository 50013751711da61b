"""`penstock topics`: topics, their subscriptions, and publishing events."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.messages import Draft
from penstock.api.topics import ListTopics, Subscribe, Subscription, Topic
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

_FILTERS = RecordFlags(ListTopics, "prefix limit")
_SUBSCRIBE = RecordFlags(Subscribe, "kinds:kind dispatch")
_PUBLISH = RecordFlags(Draft, "kind tags:tag group dedup_key")
_SUBSCRIPTION = ("subscription", "queue", "kinds", "dispatch", "since")


def _configure_list(parser: Parser) -> None:
    _FILTERS.add(parser)
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        page = server.topics.page(**_FILTERS.values(args))
    columns = ("topic", "published", "unmatched", "since")
    return out.records(
        page.topics, columns, lambda t: (t.name, t.published, t.unmatched, t.created_at)
    )


def _configure_one(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic")
    server_flags(parser)


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        topic = server.topics.get(args.topic)
    return _show_topic(topic, out)


def _create(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        topic = server.topics.put(args.topic)
    return _show_topic(topic, out)


def _show_topic(topic: Topic, out: Output) -> int:
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
    parser.flag(
        "--force", text="also delete its subscriptions; their queues stay", action="store_true"
    )
    server_flags(parser)


def _delete(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        server.topics.remove(args.topic, force=args.force)
    exits.note(f"topic {args.topic} is deleted")
    return exits.OK


def _configure_subscribe(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic; created if it does not exist")
    parser.argument("NAME", "name of the subscription; its queue is TOPIC.NAME")
    _SUBSCRIBE.add(parser)
    server_flags(parser)


def _subscribe(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        made = server.topics.subscribe(args.topic, args.name, **_SUBSCRIBE.values(args))
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
        text="also delete its queue and all messages in it; default: the queue stays",
        action="store_true",
    )
    server_flags(parser)


def _unsubscribe(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        server.topics.unsubscribe(args.topic, args.name, with_queue=args.with_queue)
    queue = "is deleted too" if args.with_queue else "still exists"
    exits.note(f"subscription {args.name} is deleted; its queue {queue}")
    return exits.OK


def _configure_publish(parser: Parser) -> None:
    parser.argument("TOPIC", "name of the topic")
    parser.argument("BODY", "body of the event: JSON, or any other text")
    _PUBLISH.add(parser)
    server_flags(parser)


def _publish(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        published = server.topics.publish(args.topic, body_of(args.body), **_PUBLISH.values(args))
    if out.json:
        out.record(published)
    else:
        out.line(published.id)
        exits.note(f"{published.messages} messages; {published.duplicates} duplicates")
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
        more="It gets the events published from now on. Its queue is an ordinary one: `penstock "
        "queues set` changes its retries and its dead-letter queue.",
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
