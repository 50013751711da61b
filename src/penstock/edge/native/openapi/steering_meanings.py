"""What the fields and parameters mean with which people look for messages and act on many."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_INSTANT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]}

FIELDS = {
    "env": "The environment variable that sets it.",
    "held_queues": "The queues it holds, by name; told of one circuit alone.",
    "is_default": "Is it as it was never set?",
    "keys": "The keys, revoked ones among them.",
    "minutes": "The samples that the circuit keeps, by minute, oldest first.",
    "revoked_at": "Since when it opens nothing any more; without it, it is in use.",
    "roles": "What it may do.",
    "successes": "Requests that went well.",
    "KeyOut.created_at": "When it was made.",
    "KeyOut.id": "The key's id, the middle part of its secret.",
    "KeyOut.name": "Whom it is for.",
    "KeyOut.queues": "Patterns of the queues it is for.",
    "MinuteOut.at": "When the minute began.",
    "MinuteOut.fail_ratio": "The share of failures in it, in percent.",
    "MinuteOut.failures": "Requests that failed.",
    "SettingOut.default": "What it is unless it is set; null: nothing.",
    "SettingOut.key": "As it stands in the config file.",
    "SettingOut.text": "What it means.",
    "SettingOut.value": "As the config file would say it; null: it is not set.",
    "SettingsOut.settings": "The settings.",
    "columns": "The names of the values in each row.",
    "days": "Of how many days there are rows.",
    "first_day": "The first of them.",
    "folder": "Where the tables are looked for.",
    "last_day": "The last of them.",
    "readiness": "Can they be read? no_reader: pyarrow is missing; no_tables: there are none yet.",
    "rows": "The rows, each a list of values in the order of the columns.",
    "tables": "The tables, by name.",
    "GoldTable.bytes": "The size of its files.",
    "GoldTable.name": "The table's name.",
}

PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "from_day": ("Only of this day or later.", {"type": "string", "format": "date"}, ""),
    "to_day": ("Only of this day or earlier.", {"type": "string", "format": "date"}, ""),
    "table": ("The table's name.", {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}, "slo"),
}
