"""Writes a demo lake, day by day, in the archiver's layout."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable, Range
from penstock.domain.limits import DAY
from penstock.pipeline.demo import scenario
from penstock.pipeline.demo.backlog import Counters
from penstock.pipeline.demo.columns import Attempts, history
from penstock.pipeline.demo.facts import facts
from penstock.pipeline.demo.flows import DemoFlows
from penstock.pipeline.schemas import schema_of

Progress = Callable[[int, int], None]
ROWS_PER_GROUP = 1_000_000


def make(
    folder: Path,
    *,
    messages: int,
    days: int,
    first_midnight: int,
    progress: Progress = lambda done, total: None,
) -> dict[str, int]:
    """Returns the number of rows per table.  The folder must not contain a lake yet."""
    if any((folder / table).exists() for table in lake.TABLES):
        raise InvalidRequest(f"{folder} already contains a lake; name another folder")
    writer = _Writer(folder)
    counters = Counters(first_midnight, days)
    carried: list[scenario.DemoMessages] = []
    carried_attempts: list[Attempts] = []
    first_no = 1
    for day, count in enumerate(scenario.messages_of_days(messages, days)):
        midnight = first_midnight + day * DAY
        is_outage = day == days // 2
        past = scenario.sent_on(
            day, messages=count, first_no=first_no, midnight=midnight, is_outage=is_outage
        )
        first_no += count
        counters.add(past)
        carried_attempts.append(Attempts(past))
        today, later = _split(scenario.join([*carried, past]), midnight)
        carried = [later]
        flows = DemoFlows(today)
        writer.write(lake.HISTORY, midnight, history(today, first_no=1) | flows.columns())
        carried_attempts = [_write_attempts(writer, each, midnight) for each in carried_attempts]
        others = facts(midnight, is_first=day == 0, is_outage=is_outage)
        in_order = sorted([*others, *flows.facts()], key=lambda row: str(row["at"]))
        writer.write_rows(lake.FACTS, midnight, in_order)
        writer.write(lake.BACKLOG, midnight, counters.samples(day))
        progress(day + 1, days)
    return writer.rows


def _split(
    past: scenario.DemoMessages, midnight: int
) -> tuple[scenario.DemoMessages, scenario.DemoMessages]:
    """The messages that end on this day, in order, and those that end later."""
    is_today = past.finished_at < midnight + DAY
    today = past.take(is_today)
    return today.take(np.argsort(today.finished_at, kind="stable")), past.take(~is_today)


def _write_attempts(writer: _Writer, attempts: Attempts, midnight: int) -> Attempts:
    is_today = attempts.ended_at < midnight + DAY
    today = attempts.take(is_today)
    in_order = today.take(np.argsort(today.ended_at, kind="stable"))
    first_no = writer.next_no(lake.ATTEMPTS, midnight)
    writer.write(lake.ATTEMPTS, midnight, in_order.columns(first_no=first_no))
    return attempts.take(~is_today)


class _Writer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next: dict[tuple[str, int], int] = {}
        self._facts = 0
        self.rows = {table.name: 0 for table in _TABLES}

    def next_no(self, table: LakeTable, midnight: int) -> int:
        return self._next.get((table.name, midnight), 1)

    def write_rows(self, table: LakeTable, midnight: int, rows: list[dict[str, object]]) -> None:
        """Numbers continue from day to day."""
        schema = _schema(table)
        numbered = [{table.number: self._facts + n, **row} for n, row in enumerate(rows, start=1)]
        self._facts += len(rows)
        if numbered:
            made = pa.Table.from_pylist(numbered, schema)
            self._put(table, midnight, made)

    def write(self, table: LakeTable, midnight: int, columns: Mapping[str, pa.Array]) -> None:
        schema = _schema(table)
        rows = len(columns[table.number])
        if not rows:
            return
        whole = [columns.get(f.name, pa.nulls(rows, f.type)) for f in schema]
        self._put(table, midnight, pa.Table.from_arrays(whole, schema=schema))

    def _put(self, table: LakeTable, midnight: int, rows: pa.Table) -> None:
        numbers = rows.column(table.number)
        name = lake.file_name(table, Range(numbers[0].as_py(), numbers[-1].as_py()))
        folder = self._folder / lake.folder(table, lake.dt_of(midnight))
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".tmp-{name}"
        pq.write_table(
            rows,
            temporary,
            compression="zstd",
            row_group_size=ROWS_PER_GROUP,
            use_dictionary=[column.name for column in table.columns if column.repeats],
        )
        os.replace(temporary, folder / name)
        self._next[table.name, midnight] = numbers[-1].as_py() + 1
        self.rows[table.name] += rows.num_rows


def _schema(table: LakeTable) -> pa.Schema:
    plain = to_arrow_schema(schema_of(table))
    fields = [plain.field(column.name) for column in table.columns]
    return pa.schema(fields, {lake.VERSION_KEY: str(lake.SCHEMA_VERSION)})


_TABLES = (lake.HISTORY, lake.ATTEMPTS, lake.FACTS, lake.BACKLOG)
