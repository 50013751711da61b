"""Output of commands: tables for people, one JSON document per line for programs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from penstock.edge.cli.kit.view import Table, View

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Output:
    def __init__(self, *, json: bool) -> None:
        self.json = json

    def show(self, record: object, *blocks: Iterable[tuple[str, object]] | Table) -> None:
        """Print a record for programs; for people, blocks of fields, and tables that have rows."""
        if self.json:
            self.record(record)
            return
        shown = [block for block in blocks if not isinstance(block, Table) or block.rows]
        for place, block in enumerate(shown):
            if place:
                self.line()
            if isinstance(block, Table):
                self.table(*block)
            else:
                self.fields(block)

    def record(self, value: object) -> None:
        """Print one JSON document."""
        print(msgspec.json.encode(_plain(value)).decode(), flush=True)

    def result(self, record: object, text: str) -> None:
        """Print a record for programs, or a line for people."""
        if self.json:
            self.record(record)
        else:
            self.line(text)

    def records(self, records: Iterable[object], view: View) -> None:
        """Print a document per record for programs, or a table for people."""
        if self.json:
            for record in records:
                self.record(record)
        else:
            self.table(*view.table(records))

    def line(self, text: str = "") -> None:
        """Print a line for people, without control characters that could reach their terminal."""
        print(escape_control(text), flush=True)

    def text(self, name: str, text: str) -> None:
        """Print a whole text, to be redirected to a file."""
        if self.json:
            self.record({name: text})
        else:
            print(text, end="", flush=True)

    def table(self, columns: Iterable[str], rows: Iterable[tuple[object, ...]]) -> None:
        """Print a table; numbers are right-aligned, and in a pipe nothing is cut or wrapped."""
        from rich import box
        from rich import table as rich_tables
        from rich.console import Console
        from rich.text import Text

        listed = list(rows)
        table = rich_tables.Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, column in enumerate(columns):
            is_number = bool(listed) and all(isinstance(row[place], int) for row in listed)
            table.add_column(column, justify="right" if is_number else "left", overflow="fold")
        for row in listed:
            table.add_row(*(Text(escape_control(display(cell))) for cell in row))
        width = None if sys.stdout.isatty() else 100_000
        Console(width=width, highlight=False).print(table)

    def fields(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Print one name and value per line; omits empty values."""
        listed = [
            (name, display(value)) for name, value in pairs if value not in (None, "", (), {})
        ]
        width = max((len(name) for name, _ in listed), default=0)
        for name, value in listed:
            self.line(f"{name:<{width}}  {value}")


def display(value: object) -> str:
    """A value as text for people."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") + "Z"
        case str():
            return value
        case int() | float():
            return f"{value}"
        case list() | tuple():
            return " ".join(map(display, value))
    return msgspec.json.encode(_plain(value)).decode()


def cut(text: str, most: int = 60) -> str:
    """The beginning of a long text, for a table."""
    return text if len(text) <= most else text[: most - 1] + "…"


def fields_of(record: msgspec.Struct, prefix: str = "") -> list[tuple[str, object]]:
    return [(prefix + name, getattr(record, name)) for name in record.__struct_fields__]


def escape_control(text: str) -> str:
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _plain(value: object) -> Any:
    """Convert to built-in types; instants become text as in the API."""
    return _walk(msgspec.to_builtins(value, builtin_types=(datetime,)))


def _walk(value: Any) -> Any:
    match value:
        case datetime():
            utc = value.astimezone(UTC).isoformat(timespec="milliseconds")
            return utc.replace("+00:00", "Z")
        case dict():
            return {key: _walk(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_walk(inner) for inner in value]
    return value
