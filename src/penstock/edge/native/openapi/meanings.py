"""What fields and parameters mean.  One word, one thing: a name means the same in most places.

Where it means something else, it stands here with its type ("Fixed.delay_ms").
"""

from __future__ import annotations

from typing import Any

from penstock.edge.native.openapi import (
    bus_meanings,
    work_meanings,
)

FIELDS = {
    "attempts": "Claims that count.",
    "attributes": "Texts beside the body.",
    "body": "Any JSON value.",
    "code": "Stable: programs may depend on it.",
    "crashes": "Workers that died with it.",
    "dedup_key": "A second message with this key within the window is not sent again.",
    "dedup_until": "How long its dedup key is taken; null: for the queue's window.",
    "dedup_window_ms": "How long a dedup key is remembered.",
    "due_at": "When it may be claimed.",
    "entity_id": "What the message is about, for searching.",
    "error": "What went wrong.",
    "expires_in_ms": "The same as expires_at, counted from now.",
    "failures": "Attempts that failed.",
    "finished_at": "When it was done, died or was cancelled.",
    "first_leased_at": "When it was claimed for the first time.",
    "group": "In a queue ordered by group, messages of one group are handled one after the other.",
    "id": "The message's id.",
    "is_cut": "There are more.",
    "is_duplicate": "There was a message with this dedup key already; the id is that one's.",
    "kind": "The name that picks a handler.",
    "last_error": "What the last failed attempt said.",
    "lease_no": "Grows with each claim.",
    "leased_at": "When it was claimed.",
    "leased_by": "Who claimed it.",
    "leased_until": "When the lease runs out.",
    "limit": "How many at most.",
    "max_attempts": "After how many attempts it dies; null: never.",
    "message": "For people; it may change.",
    "moves": "The moves, newest first.",
    "next": "Cursor of the next page; null: this is the last.",
    "priority": "Smaller goes first.",
    "queue": "The queue's name.",
    "reason": "Why it was given up or cancelled.",
    "retries_timeouts": "An attempt that takes too long is tried again, not the message's last.",
    "route": "Where it leads: workers ask the circuit of that name before they run it.",
    "sent_at": "When it was sent.",
    "size": "Bytes of the body.",
    "state": "Where it is in its life.",
    "tags": "Up to two texts, for searching.",
    "timeout_ms": "How long one attempt may take; null: as long as it is extended.",
    "type": "Which kind of back-off this is.",
    "wait_ms": "How long to wait for the first message; null: as the queue says.",
}

_TEXT = {"type": "string"}

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
PARAMETERS |= bus_meanings.PARAMETERS
