"""What the fields and parameters mean with which people look for messages and act on many."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_INSTANT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]}

FIELDS = {
    "changed": "How many it was done to.",
    "is_dry_run": "Only count; nothing changes.",
    "is_running_ok": "Also what is leased: its lease holder loses it; for cancel and bury.",
    "matched": "How many were found.",
    "refused": "How many were not there, or not in a state for this.",
    "where": "Messages that are all of this; without a value everything fits.",
    "BulkIn.act": "What to do with each of them.",
    "BulkIn.due_at": "For reschedule: when they may be claimed.",
    "BulkIn.delay_ms": "The same as due_at, counted from now.",
    "RescheduleIn.delay_ms": "The same as due_at, counted from now.",
    "BulkIn.ids": "The messages themselves, at most 1,000; in place of where.",
    "BulkIn.reason": "For complete, cancel and bury: why.",
    "ChangedOut.is_cut": "There are more than 100,000: ask again for the others.",
    "WhereIn.entity_id": "Only those about this.",
    "WhereIn.group": "Only those of this group.",
    "WhereIn.kind": "Only those of this kind.",
    "WhereIn.sent_before": "Only those sent before this instant.",
    "WhereIn.sent_from": "Only those sent at this instant or later.",
    "WhereIn.state": "Those in this state: ready, waiting or dead; leased with is_running_ok.",
    "WhereIn.tag": "Only those with this tag, the first or the second.",
}

PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "group": ("Only messages of this group.", _TEXT, ""),
    "sent_before": ("Only messages sent before this instant.", _INSTANT, ""),
    "sent_from": ("Only messages sent at this instant or later.", _INSTANT, ""),
}
