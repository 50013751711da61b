"""What the fields and parameters of notifications, topics and events mean."""

from __future__ import annotations

from typing import Any

FIELDS = {
    "dispatch": "Who handles its events: whoever claims first, or the worker that published.",
    "duplicates": "How many messages were there already, by their dedup key.",
    "events": "The events, in their order.",
    "future_user_token": "A token made for what the handler does; null for a duplicate.",
    "next_due_at": "When it may be claimed next, if that is another date: it has failed.",
    "node": "The id of the worker that publishes; it gets what sticky subscriptions want.",
    "notifications": "The notifications.",
    "published": "How many events were published.",
    "subscriptions": "Its subscriptions, by name.",
    "topic": "The topic's name.",
    "topics": "The topics, by name.",
    "unmatched": "How many of them no subscription wanted.",
    "user_token": "A token of whoever recorded it, kept and handed on.",
    "AllPublishedOut.events": "What became of each event.",
    "NotificationOut.due_at": "The date it was recorded for, or moved to.",
    "NotificationOut.id": "The notification's id.",
    "PublishedOut.id": "The event's id; its messages have ids of their own.",
    "PublishedOut.messages": "How many messages it has become.",
    "RecordedOut.due_at": "When it may be claimed.",
    "RecordedOut.id": "The notification's id.",
    "SubscribeIn.kinds": "Patterns (order.*) of the kinds it wants; none: every event.",
    "SubscribeIn.settings": "How its queue behaves; null: as it is, or as by default.",
    "SubscriptionOut.created_at": "When it was made.",
    "SubscriptionOut.kinds": "Patterns of the kinds it wants; none: every event.",
    "SubscriptionOut.name": "The subscription's name.",
    "SubscriptionOut.queue": "Where its messages wait.",
    "TopicOut.created_at": "When it was made.",
    "TopicOut.name": "The topic's name.",
}

_TEXT = {"type": "string"}
_INSTANT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]}
_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,77}$"}

PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "due_before": ("Only those in line that are due before this instant.", _INSTANT, ""),
    "due_from": ("Only those in line that are due at this instant or later.", _INSTANT, ""),
    "subscription": ("The subscription's name.", _NAME, "mailer"),
    "tag1": ("Only messages with this first tag.", _TEXT, ""),
    "tag2": ("Only messages with this second tag.", _TEXT, "tenant-1"),
    "topic": ("The topic's name.", _NAME, "orders"),
    "which": (
        "Those in line (due or not), those that are held, or both.",
        {"type": "string", "enum": ["future", "leased", "live"], "default": "live"},
        "future",
    ),
    "with_queue": (
        "Remove its queue too, with all that it holds.",
        {"type": "boolean", "default": False},
        "true",
    ),
}
