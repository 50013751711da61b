"""The queries of sql/common in MariaDB's SQL; sql/mariadb has those that need more than this.

Its own marks, besides those of store/queries.py:

    {table:NAME:bigint,text}  NAME, a JSON list of lists, as a table with columns c0 and c1
    {slots:NAME}              lock slots of the members of NAME, a JSON list, in ascending order
    {found:COLUMN}            the values of a column that the SELECT before returned, or of several
    <<each NAME: …>>          an arm of a UNION ALL for each member of NAME, which is :each there
    {slot:QUEUE,GROUP}        the lock slot of a group, as {slots:…} has it
"""

from __future__ import annotations

import re

_TEXT = "varchar(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
_TYPES = {"bigint": "bigint", "text": _TEXT, "long": _TEXT.replace("varchar(700)", "longtext")}

_TABLE = re.compile(r"\{table:(\w+):([\w,]+)\}")
_CONFLICT = re.compile(r"ON CONFLICT\s*(\([^)]*\))?\s*DO UPDATE\s+SET\b")
_NO_CHANGE = re.compile(r"ON CONFLICT\s*(\([^)]*\))?\s*DO NOTHING")
_INSERT = re.compile(r"INSERT INTO ([\w{}]+) \(\s*(\w+)")
_FOUND = re.compile(r"\{found:([\w,]+)\}")

_CHANGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\{slots:(\w+)\}"), r":#\1"),
    (re.compile(r"\{slot:([\w.]+),([\w.]+)\}"), r"CRC32(CONCAT(\1, '/', \2)) & 2047"),
    (re.compile(r"IN \(SELECT value FROM json_each\(:(\w+)\)\)"), r"IN (::\1)"),
    (re.compile(r"\bAS (?:BIGINT|INTEGER)\)", re.IGNORECASE), "AS SIGNED)"),
    (re.compile(r"\bAS TEXT\)", re.IGNORECASE), "AS CHAR)"),
    (re.compile(r"\bAS MATERIALIZED\b"), "AS"),
    (re.compile(r"(?<![_\w])length\("), "char_length("),
    (_CONFLICT, "ON DUPLICATE KEY UPDATE"),
    (re.compile(r"\bexcluded\.(\w+)"), r"VALUES(\1)"),
    # Reserved words.
    (re.compile(r"\b(FROM|INTO|UPDATE) signal\b"), r'\1 "signal"'),
    (re.compile(r"(?<![:\w])lines\b"), '"lines"'),
)


# By default MariaDB reads a small table as a whole, and waits for rows that others have locked.
_BY_NUMBER = re.compile(r"\bWHERE message_no (?:=|IN)")
_DELETE = re.compile(r"\ADELETE FROM (message|flow_member)\b")
_UPDATE = re.compile(r"^UPDATE (message|flow_member)$", re.MULTILINE)


def mariadb_text(text: str) -> str:
    if _BY_NUMBER.search(text):
        text = _DELETE.sub(r"DELETE \1 FROM \1 FORCE INDEX (PRIMARY)", text)
        text = _UPDATE.sub(r"UPDATE \1 FORCE INDEX (PRIMARY)", text)
    text = _TABLE.sub(_table, text)
    text = _FOUND.sub(lambda match: f":^{match[1].replace(',', '$')}", text)
    if match := _NO_CHANGE.search(text):
        text = _without_change(text, match)
    for pattern, ours in _CHANGES:
        text = pattern.sub(ours, text)
    return text


def _without_change(text: str, match: re.Match[str]) -> str:
    """An insert that does nothing if the row is there; with RETURNING it returns only new rows."""
    if "RETURNING" in text:
        return text.replace(match[0], "").replace("INSERT INTO", "INSERT IGNORE INTO", 1)
    insert = _INSERT.search(text)
    assert insert is not None
    table, column = insert.groups()
    return text.replace(match[0], f"ON DUPLICATE KEY UPDATE {column} = {table}.{column}")


def _table(match: re.Match[str]) -> str:
    columns = ", ".join(
        f"c{i} {_TYPES[kind]} PATH '$[{i}]'" for i, kind in enumerate(match[2].split(","))
    )
    return f"JSON_TABLE(:{match[1]}, '$[*]' COLUMNS ({columns}))"
