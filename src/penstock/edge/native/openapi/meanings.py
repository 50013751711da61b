"""What fields and parameters mean.  One word, one thing: a name means the same in most places.

Where it means something else, it stands here with its type ("Fixed.delay_ms").
"""

from __future__ import annotations

from typing import Any

from penstock.edge.native.openapi import (
    bus_meanings,
    steering_meanings,
    work_meanings,
)

FIELDS = {
    "act": "What to do with the lease.",
    "acts": "What to do, one after the other; each has its own result.",
    "attempts": "Claims that count.",
    "attributes": "Texts beside the body.",
    "body": "Any JSON value.",
    "complete": "Receipts of this queue: what is done is completed in the same transaction.",
    "completed": "What became of them, each with its own result.",
    "claim_key": "The same key again gives the same messages, for five minutes.",
    "claimed_by": "Who claims, for operators to see.",
    "code": "Stable: programs may depend on it.",
    "crashes": "Workers that died with it.",
    "dead_from": "The queue in which it died, while it stands in a dead-letter queue.",
    "dedup_key": "A second message with this key within the window is not sent again.",
    "dedup_until": "How long its dedup key is taken; null: for the queue's window.",
    "deadline_at": "When this attempt has taken too long: an extension from then on times it out.",
    "dedup_window_ms": "How long a dedup key is remembered.",
    "delay_ms": "How long from now until it may be claimed.",
    "due_at": "When it may be claimed.",
    "entity_id": "What the message is about, for searching.",
    "error": "What went wrong.",
    "expires_at": "When it is of no use any more: it is cancelled if still in line then.",
    "expires_in_ms": "The same as expires_at, counted from now.",
    "failures": "Attempts that failed.",
    "finished_at": "When it was done, died or was cancelled.",
    "first_leased_at": "When it was claimed for the first time.",
    "group": "In a queue ordered by group, messages of one group are handled one after the other.",
    "id": "The message's id.",
    "in_a_row": "Take as many of a group as are ready, in a queue ordered by group.",
    "is_blocked": "An earlier message of its group is not finished yet, or its group has enough.",
    "is_cut": "There are more.",
    "is_duplicate": "There was a message with this dedup key already; the id is that one's.",
    "is_late_ok": "Take it although the lease ran out, as long as nobody else claimed the message.",
    "is_start": "Work begins now: the message's timeout is counted from here, the first time.",
    "kind": "The name that picks a handler.",
    "kinds": "Only messages of these kinds, 1 to 100; null: of all. Not with in_a_row.",
    "last_error": "What the last failed attempt said.",
    "lease_ms": "How long a claimed message is held; null: as the queue says.",
    "lease_no": "Grows with each claim.",
    "leased_at": "When it was claimed.",
    "leased_by": "Who claimed it.",
    "leased_until": "When the lease runs out.",
    "limit": "How many at most.",
    "max_attempts": "After how many attempts it dies; null: never.",
    "message": "For people; it may change.",
    "messages": "The messages.",
    "moves": "The moves, newest first.",
    "next": "Cursor of the next page; null: this is the last.",
    "priority": "Smaller goes first.",
    "progress": "How far its holder is: any JSON value, kept until the next attempt.",
    "queue": "The queue's name.",
    "reason": "Why it was given up or cancelled.",
    "receipt": "Proves the lease; needed for every act on it.",
    "results": "One for each entry, in their order.",
    "retries_timeouts": "An attempt that takes too long is tried again, not the message's last.",
    "retry_in_ms": "When to try again; null: as the queue's back-off says.",
    "route": "Where it leads: workers ask the circuit of that name before they run it.",
    "sent_at": "When it was sent.",
    "size": "Bytes of the body.",
    "state": "Where it is in its life.",
    "tags": "Up to two texts, for searching.",
    "timeout_ms": "How long one attempt may take; null: as long as it is extended.",
    "trace": "Context for tracing, handed on as it is.",
    "type": "Which kind of back-off this is.",
    "wait_ms": "How long to wait for the first message; null: as the queue says.",
    "BatchActIn.delay_ms": "For release and snooze: how long from now until it may be claimed.",
    "BatchActIn.error": "For fail, time_out and crash: what went wrong.",
    "BatchActIn.is_late_ok": "For complete and extend: take it although the lease ran out.",
    "BatchActIn.is_start": "For extend: work begins now, and the timeout is counted from here.",
    "BatchActIn.progress": "For extend: how far its holder is, any JSON value.",
    "BatchActIn.lease_ms": "For extend: how long from now it is held; null: as the queue says.",
    "BatchActIn.reason": "For bury, cancel and snooze: why.",
    "BatchActIn.retry_in_ms": "For fail and time_out: when to try again; null: by the back-off.",
    "DraftIn.delay_ms": "The same as due_at, counted from now.",
    "DraftIn.max_attempts": "Its own limit in place of the queue's.",
    "ExtendIn.lease_ms": "How long from now it is held; null: as the queue says.",
    "MessageOut.max_attempts": "Its own limit in place of the queue's.",
    "MessageOut.started_at": "When its holder said that work begins.",
}

_TEXT = {"type": "string"}

# Recurring work.
FIELDS |= {
    "catch_up": "What happens to firings that nobody was there for.",
    "cron": "A cron expression of five fields, or six with seconds in front.",
    "every_ms": "The time between firings, which fall on whole multiples of it since 1970.",
    "fired": "How often it was fired.",
    "instants": "When it is fired next.",
    "last_at": "The last firing, as planned.",
    "last_id": "The message that the last firing sent.",
    "next_at": "The next firing.",
    "owner": "The application that declared it; without one it was made by hand.",
    "declared": "The names of all recurring work that the application declares now.",
    "retired": "The names of what was removed.",
    "overlap": "What a firing does while the message of the one before it has not ended.",
    "recurring": "Recurring work, by name.",
    "skipped": "How many firings were left out, as catch_up and overlap say.",
    "zone": "The time zone that the cron expression is read in.",
    "PreviewIn.count": "How many instants to tell.",
    "NewRecurringIn.body": "The body of each message: any JSON value.",
    "NewRecurringIn.queue": "The queue that the messages go to.",
    "NewRecurringIn.max_attempts": "Of each message, in place of the queue's.",
    "RecurringOut.is_paused": "Is it held back?",
    "RecurringOut.last_error": "Why the last firing that was due could not be sent.",
    "RecurringOut.max_attempts": "Of each message, in place of the queue's.",
    "RecurringOut.name": "The name of the recurring work.",
    "RecurringOut.queue": "The queue that the messages go to.",
    "RecurringOut.changed_at": "When it was changed last.",
    "RecurringOut.created_at": "When it was made.",
    "RunOut.id": "The message that was sent.",
}

_INSTANT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]}

# Name: meaning, schema, and a value that works (for most filters: none, or nothing is found).
PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "id": ("The message's id.", {"type": "string", "format": "uuid"}, ""),
    "queue": (
        "The queue's name.",
        {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$"},
        "mail",
    ),
    "receipt": ("The receipt that came with the claimed message.", _TEXT, ""),
    "cursor": ("`next` of the page before; without it the first page.", _TEXT, ""),
    "entity_id": ("Only messages about this.", _TEXT, ""),
    "force": (
        "Remove it with all that it holds.",
        {"type": "boolean", "default": False},
        "true",
    ),
    "from": ("Only what happened at this instant or later.", _INSTANT, ""),
    "kind": ("Only what is of this kind.", _TEXT, ""),
    "limit": (
        "How many at most.",
        {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "10",
    ),
    "move": ("The move's id.", {"type": "string", "format": "uuid"}, ""),
    "circuit": ("The circuit's hash.", {"type": "string"}, ""),
    "fleet": ("The fleet's name.", {"type": "string"}, "mail"),
    "table": ("The table's name.", {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}, "slo"),
    "prefix": ("Only queues whose names begin like this.", _TEXT, "ma"),
    "count": (
        "How many instants to tell.",
        {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
        "3",
    ),
    "schedule": (
        "The name of the recurring work.",
        {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$"},
        "nightly",
    ),
    "state": (
        "Messages in this state.",
        {"type": "string", "enum": ["ready", "waiting", "leased", "dead"], "default": "ready"},
        "waiting",
    ),
    "tag": ("Only messages with this tag.", _TEXT, ""),
    "to": ("Only what happened before this instant.", _INSTANT, ""),
}

FIELDS |= work_meanings.FIELDS
PARAMETERS |= work_meanings.PARAMETERS
FIELDS |= bus_meanings.FIELDS
PARAMETERS |= bus_meanings.PARAMETERS
FIELDS |= steering_meanings.FIELDS
PARAMETERS |= steering_meanings.PARAMETERS
