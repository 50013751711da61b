"""`penstock topics`: topics, their subscriptions, and publishing events."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.api.messages import Draft
from penstock.api.topics import Endpoint, ListTopics, Subscribe, Subscription, Topic
from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.command import ServerCommand, argument, flag, listing, showing
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import Form, RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote


def _json_object(text: str) -> dict[str, Any]:
    """Raises ValueError, as the parser of flags expects."""
    return msgspec.json.decode(text, type=dict[str, Any])


_FILTERS = RecordFlags(ListTopics, "prefix limit")
_SUBSCRIBE = RecordFlags(
    Subscribe,
    "kinds:kind dispatch filter filter_scope format",
    forms={"filter": Form("JSON", _json_object, is_whole=True)},
)
_ENDPOINT = RecordFlags(
    Endpoint,
    "url signing_secrets:secret order concurrency timeout_ms:endpoint-timeout headers:header "
    "enabled",
    texts={
        "signing_secrets": "a secret (`whsec_…`) that signs deliveries; may be repeated while one "
        "replaces another; default: the present ones",
        "headers": "a header of every request; may be repeated; default: the present ones",
        "enabled": "whether deliveries go out; otherwise they wait",
    },
    is_patch=True,
)
_PUBLISH = RecordFlags(Draft, "kind tags:tag group dedup_key")
_LISTED = View("name:topic published unmatched created_at:since")
_TOPIC_VIEW = View("name:topic created_at:since published unmatched")
_SUBSCRIPTION = View(
    "name:subscription queue kinds filter format endpoint dispatch created_at:since",
    endpoint=lambda s: s.endpoint.url if s.endpoint else "",
    kinds=lambda s: s.kinds or "all",
    filter=lambda s: "" if s.filter is None else msgspec.json.encode(s.filter).decode(),
)
_TOPIC = argument("TOPIC", "name of the topic")
_NAME = argument("NAME", "name of the subscription")


def _show_topic(topic: Topic, out: Output) -> None:
    subscriptions = _SUBSCRIPTION.table(topic.subscriptions or ())
    out.show(topic, _TOPIC_VIEW.lines(topic), subscriptions)


def _delete(server: Remote, args: Namespace, out: Output) -> None:
    server.topics.remove(args.topic, force=args.force)
    exits.note(f"topic {args.topic} is deleted")


def _unsubscribe(server: Remote, args: Namespace, out: Output) -> None:
    server.topics.unsubscribe(args.topic, args.name, with_queue=args.with_queue)
    queue = "is deleted too" if args.with_queue else "still exists"
    exits.note(f"subscription {args.name} is deleted; its queue {queue}")


def _subscribe(server: Remote, args: Namespace) -> Subscription:
    endpoint = _ENDPOINT.values(args)
    if endpoint and "url" not in endpoint:
        raise InvalidRequest("the flags of an endpoint need --url")
    return server.topics.subscribe(
        args.topic, args.name, **_SUBSCRIBE.values(args), endpoint=endpoint or None
    )


def _publish(server: Remote, args: Namespace, out: Output) -> None:
    published = server.topics.publish(args.topic, body_of(args.body), **_PUBLISH.values(args))
    out.result(published, published.id)
    if not out.json:
        exits.note(f"{published.messages} messages; {published.duplicates} duplicates")


COMMANDS = {
    "topics": ServerCommand(
        listing(_LISTED, lambda server, args: server.topics.page(**_FILTERS.values(args)).topics),
        _FILTERS.add,
        examples=("penstock topics", "penstock topics --json"),
    ),
    "topics show": ServerCommand(
        lambda server, args, out: _show_topic(server.topics.get(args.topic), out),
        _TOPIC,
        examples=("penstock topics show orders",),
    ),
    "topics create": ServerCommand(
        lambda server, args, out: _show_topic(server.topics.put(args.topic), out),
        _TOPIC,
        examples=("penstock topics create orders",),
    ),
    "topics delete": ServerCommand(
        _delete,
        _TOPIC,
        flag("--force", "also delete its subscriptions; their queues stay"),
        examples=("penstock topics delete orders --force",),
    ),
    "topics subscribe": ServerCommand(
        showing(
            _SUBSCRIPTION,
            _subscribe,
        ),
        argument("TOPIC", "name of the topic; created if it does not exist"),
        argument("NAME", "name of the subscription; its queue is TOPIC.NAME"),
        _SUBSCRIBE.add,
        _ENDPOINT.add,
        more="It gets the events published from now on. Its queue is an ordinary one: `penstock "
        "queues set` changes its retries and its dead-letter queue.",
        examples=(
            "penstock topics subscribe orders mailer",
            "penstock topics subscribe orders audit --kind 'order.*' --kind 'invoice.*'",
            "penstock topics subscribe orders shop --url https://example.org/hook --order group",
            'penstock topics subscribe orders eu --filter \'{"region": [{"prefix": "eu-"}]}\'',
        ),
    ),
    "topics unsubscribe": ServerCommand(
        _unsubscribe,
        _TOPIC,
        _NAME,
        flag(
            "--with-queue", "also delete its queue and all messages in it; default: the queue stays"
        ),
        examples=("penstock topics unsubscribe orders mailer --with-queue",),
    ),
    "topics publish": ServerCommand(
        _publish,
        _TOPIC,
        argument("BODY", "body of the event: JSON, or any other text"),
        _PUBLISH.add,
        more="Prints the id of the event.",
        examples=("penstock topics publish orders '{\"order\": 7}' --kind order.placed",),
    ),
}
