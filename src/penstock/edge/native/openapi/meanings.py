"""What fields and parameters mean.  One word, one thing: a name means the same in most places.

Where it means something else, it stands here with its type ("Fixed.delay_ms").
"""

from __future__ import annotations

from typing import Any

from penstock.edge.native.openapi import (
    bus_meanings,
    push_meanings,
    scaling_meanings,
    steering_meanings,
    watching_meanings,
    work_meanings,
)

FIELDS = {
    "annotations": "Texts that the faces of the server keep with the queue.",
    "attempts": "Claims that count.",
    "attributes": "Texts beside the body.",
    "backend": "The store behind this node: sqlite or postgres.",
    "backoff": "How long a failed message waits before it may be claimed again.",
    "body": "Any JSON value.",
    "burst": "After a pause so many may come at once.",
    "cancelled": "How many were cancelled.",
    "claimed": "How many were handed out.",
    "code": "Stable: programs may depend on it.",
    "crashes": "Workers that died with it.",
    "counts": "How many are there now, by state.",
    "created_at": "When the queue was made.",
    "dead": "How many are dead and wait for a redrive.",
    "dead_letter_queue": "Where dead messages go; null: they rest where they died.",
    "dedup_by_content": "A message without a dedup key gets one: the SHA-256 of its body.",
    "dedup_key": "A second message with this key within the window is not sent again.",
    "dedup_scope": "Among which messages a dedup key must be the only one.",
    "dedup_until": "How long its dedup key is taken; null: for the queue's window.",
    "dedup_window_ms": "How long a dedup key is remembered.",
    "delays_ms": "The wait after the first failure, the second, and so on.",
    "done": "How many were completed.",
    "due_at": "When it may be claimed.",
    "ended_at": "When the lease ended.",
    "endings": "How messages ended, newest first.",
    "entity_id": "What the message is about, for searching.",
    "error": "What went wrong.",
    "expired_leases": "How many leases ran out.",
    "expires_in_ms": "The same as expires_at, counted from now.",
    "factor": "By how much each wait is longer than the one before.",
    "failed": "How many attempts failed.",
    "failures": "Attempts that failed.",
    "finished_at": "When it was done, died or was cancelled.",
    "first_leased_at": "When it was claimed for the first time.",
    "first_ms": "The wait after the first failure.",
    "group": "In a queue ordered by group, messages of one group are handled one after the other.",
    "id": "The message's id.",
    "is_duplicate": "There was a message with this dedup key already; the id is that one's.",
    "is_fair": "Groups share the queue by their weights, whoever sent how much.",
    "is_paused": "Claims are stopped by an operator.",
    "jitter": "By which share the wait is varied, up and down.",
    "kind": "The name that picks a handler.",
    "labels": "What the queue is labelled with, for people.",
    "last_error": "What the last failed attempt said.",
    "lease_no": "Grows with each claim.",
    "leased": "How many are held by somebody.",
    "leased_at": "When it was claimed.",
    "leased_by": "Who claimed it.",
    "leased_until": "When the lease runs out.",
    "limit": "How many at most.",
    "max_attempts": "After how many attempts it dies; null: never.",
    "max_body_bytes": "The largest body taken; null: the server's limit.",
    "max_crashes": "After so many dead workers it is set aside; null: never.",
    "max_leased": "How many may be leased at the same time; null: no limit.",
    "max_leased_per_group": "How many of a group may be leased at the same time; null: no limit.",
    "max_messages": "How many may wait at most; null: no limit.",
    "max_ms": "The longest wait.",
    "message": "For people; it may change.",
    "moves": "The moves, newest first.",
    "name": "The queue's name.",
    "next": "Cursor of the next page; null: this is the last.",
    "now": "The server's time.",
    "oldest_ready_at": "Since when the first in line could have been claimed.",
    "ordering": "Must messages of one group be handled one after the other?",
    "outcome": "How it ended.",
    "per_ms": "The time for which the limit counts.",
    "priority": "Smaller goes first.",
    "queue": "The queue's name.",
    "queues": "The queues.",
    "rate": "How many may be claimed in a time; null: no limit.",
    "rate_per_group": "How many of a group may be claimed in a time; null: no limit.",
    "ready": "How many can be claimed.",
    "reason": "Why it was given up or cancelled.",
    "redelivery": "Where a message that comes back stands in line.",
    "redriven": "How many were brought back.",
    "retention_ms": "How long a message may wait before it is cancelled; null: for ever.",
    "retries_timeouts": "An attempt that takes too long is tried again, not the message's last.",
    "route": "Where it leads: workers ask the circuit of that name before they run it.",
    "sent": "How many arrived.",
    "sent_at": "When it was sent.",
    "settings": "How the queue behaves.",
    "size": "Bytes of the body.",
    "state": "Where it is in its life.",
    "status": "How it is.",
    "tags": "Up to two texts, for searching.",
    "timeout_ms": "How long one attempt may take; null: as long as it is extended.",
    "to": "The queue to bring them to; null: where they died.",
    "totals": "How many there ever were.",
    "type": "Which kind of back-off this is.",
    "version": "The version of this server.",
    "wait_ms": "How long to wait for the first message; null: as the queue says.",
    "waiting": "How many are not due yet.",
    "weights": 'The shares of groups in a fair queue. Others have 1; "" is all without a group.',
    "waiting_claims": "How many claims wait for a message.",
    "Fixed.delay_ms": "The wait after each failure.",
    "PastOut.attempts": "Leases that ended without finishing the message.",
    "QueueSettings.delay_ms": "How long new messages wait before they can be claimed.",
    "QueueSettings.lease_ms": "How long a claimed message is held unless the claim says otherwise.",
    "QueueSettings.wait_ms": "How long a claim waits that does not say; null: not at all.",
    "Rate.limit": "How many in that time.",
    "StatsOut.queues": "How many queues there are.",
    "TotalsOut.dead": "How many died.",
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
    "contains": ("Only queues with this in their names, in small letters or capitals.", _TEXT, ""),
    "dead_letter_queue": ("Only queues whose dead messages go there.", _TEXT, ""),
    "move": ("The move's id.", {"type": "string", "format": "uuid"}, ""),
    "outcome": (
        "Only messages that ended so.",
        {"type": "string", "enum": ["done", "dead", "cancelled"]},
        "",
    ),
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
    "tag": ("Only messages with this tag.", _TEXT, ""),
    "to": ("Only what happened before this instant.", _INSTANT, ""),
}

FIELDS |= work_meanings.FIELDS
PARAMETERS |= work_meanings.PARAMETERS
FIELDS |= bus_meanings.FIELDS
PARAMETERS |= bus_meanings.PARAMETERS
FIELDS |= push_meanings.FIELDS
PARAMETERS |= push_meanings.PARAMETERS
FIELDS |= scaling_meanings.FIELDS
PARAMETERS |= scaling_meanings.PARAMETERS
FIELDS |= watching_meanings.FIELDS
PARAMETERS |= watching_meanings.PARAMETERS
FIELDS |= steering_meanings.FIELDS
PARAMETERS |= steering_meanings.PARAMETERS
