"""What the fields and parameters mean with which people look for messages and act on many."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_INSTANT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]}

FIELDS = {
    "held_queues": "The queues it holds, by name; told of one circuit alone.",
    "minutes": "The samples that the circuit keeps, by minute, oldest first.",
    "successes": "Requests that went well.",
    "MinuteOut.at": "When the minute began.",
    "MinuteOut.fail_ratio": "The share of failures in it, in percent.",
    "MinuteOut.failures": "Requests that failed.",
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
