"""An answer: the question, sentences with the figures, one chart, and advice.

Pure: rows of tables in, an answer out.  The report and the server render the same answers.  Tables
are read as streams and reduced on the way, so that memory does not grow with the number of days.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Protocol

import msgspec

from penstock.domain.described import about

Row = Mapping[str, Any]
Rows = Sequence[Row]

MAX_NAMED = 5  # queues, routes and kinds that sentences name
MAX_DRAWN = 8  # in a chart


class SourceTable(Protocol):
    """A computed table, on the days that are asked about."""

    def rows(self, *columns: str, **only: Collection[Any]) -> Iterable[Row]:
        """The rows with `dt` and these columns, the newest day first; may be called again.

        `only`: the values that a column may have.
        """
        ...


SourceTables = Mapping[str, SourceTable | None]  # None: the table was never computed


class Unit(StrEnum):
    COUNT = "count"
    MS = "ms"
    HOURS = "hours"
    PERCENT = "percent"
    BYTES = "bytes"


class ChartKind(StrEnum):
    BARS = "bars"  # one group of bars per name
    LINES = "lines"  # one line per series; the names are days


class ChartPoint(msgspec.Struct, frozen=True):
    name: Annotated[str, about("What the values describe; in a line chart, the day.")]
    values: Annotated[list[float | None], about("One value per series; null: none.")]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    kind: Annotated[ChartKind, about("bars: by name; lines: by day.")]
    title: Annotated[str, about("What the chart shows.")]
    unit: Annotated[Unit, about("The unit of all values.")]
    series: Annotated[list[str], about("The names of the series.")]
    points: Annotated[list[ChartPoint], about("The values.")]


class BacktestFigure(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, about("What was measured.")]
    unit: Annotated[Unit, about("The unit of both values.")]
    before: Annotated[float | None, about("With the settings in force; null: unknown.")]
    after: Annotated[float | None, about("With the recommended settings; null: unknown.")]


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    target: Annotated[
        str, about("What to change: a route, `*` for all routes, or the name of a fleet.")
    ]
    settings: Annotated[dict[str, int], about("The recommended settings.")]
    before: Annotated[
        dict[str, int], about("The settings that they were compared with: those in force.")
    ]
    days: Annotated[int, about("How many days were replayed.")]
    backtest: Annotated[
        list[BacktestFigure], about("What both settings would have done on these days.")
    ]
    refusal: Annotated[str | None, about("Why it cannot be applied; null: it can be applied.")] = (
        None
    )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, about("A stable name of the question.")]
    question: Annotated[str, about("The question.")]
    sentences: Annotated[list[str], about("The answer, in plain English.")]
    picture: Annotated[Chart | None, about("The answer as a chart; null: nothing to draw.")]
    advice: Annotated[list[Advice], about("Recommended changes of settings.")]
    tables: Annotated[list[str], about("The tables that the figures come from.")]


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """The disk of a store in a file, now."""

    used_bytes: int  # by the store's files: messages, history, indexes and logs
    free_bytes: int


class SettingsInForce(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that are in force now, of a route or a fleet."""

    target: str
    key: str  # the route or queue whose replays apply to it
    settings: dict[str, int] | None  # None: they have not been replayed, whatever they are


class CurrentState(msgspec.Struct, frozen=True, kw_only=True):
    """What a server knows about the present; a report knows none of it."""

    in_force: Sequence[SettingsInForce] | None = None
    disk: Disk | None = None


def total(rows: Iterable[Row], name: str) -> int:
    return sum(row.get(name) or 0 for row in rows)


def largest(rows: Iterable[Row], name: str) -> Any:
    """The largest value; None: there is none."""
    return max((row[name] for row in rows if row.get(name) is not None), default=None)


def group_by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return found


def bars(
    title: str, unit: Unit, series: Sequence[str], values: Iterable[tuple[str, Sequence[Any]]]
) -> Chart | None:
    """The first ones; None: nothing to draw."""
    points = [ChartPoint(name, list(them)) for name, them in values][:MAX_DRAWN]
    return _chart(ChartKind.BARS, title, unit, series, points)


def lines(
    title: str, unit: Unit, series: Sequence[str], values: Iterable[tuple[str, Sequence[Any]]]
) -> Chart | None:
    """None if there are fewer than two days: a line needs two points."""
    points = [ChartPoint(day, list(them)) for day, them in values]
    return _chart(ChartKind.LINES, title, unit, series, points) if len(points) > 1 else None


def _chart(
    kind: ChartKind, title: str, unit: Unit, series: Sequence[str], points: list[ChartPoint]
) -> Chart | None:
    if not any(value is not None for point in points for value in point.values):
        return None
    return Chart(kind=kind, title=title, unit=unit, series=list(series), points=points)
