"""An answer: the question, sentences with the figures, one picture, and advice.

Pure: rows of tables in, an answer out.  The report and the server render the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from penstock.domain.described import about

Row = Mapping[str, Any]
Rows = Sequence[Row]
TableRowsByName = Mapping[str, Rows | None]  # None: the table was never computed

MAX_NAMED = 5  # queues, routes and kinds that sentences name
MAX_DRAWN = 8  # in a picture


class Unit(StrEnum):
    COUNT = "count"
    MS = "ms"
    HOURS = "hours"
    PERCENT = "percent"
    BYTES = "bytes"


class PictureKind(StrEnum):
    BARS = "bars"  # one group of bars per name
    LINES = "lines"  # one line per series; the names are days


class PicturePoint(msgspec.Struct, frozen=True):
    name: Annotated[str, about("What the values are of; in a picture of lines, a day.")]
    values: Annotated[list[float | None], about("One value per series; null: none.")]


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    kind: Annotated[PictureKind, about("bars: by name; lines: by day.")]
    title: Annotated[str, about("What is drawn.")]
    unit: Annotated[Unit, about("The unit of all values.")]
    series: Annotated[list[str], about("The names of the series.")]
    points: Annotated[list[PicturePoint], about("The values.")]


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
    picture: Annotated[Picture | None, about("The answer as a picture; null: nothing to draw.")]
    advice: Annotated[list[Advice], about("Recommended changes of settings.")]
    tables: Annotated[list[str], about("The tables that the figures come from.")]


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that are in force now, of a route or a fleet."""

    target: str
    key: str  # the route or queue whose replays apply to it
    settings: dict[str, int] | None  # None: they have not been replayed, whatever they are


def days_of(rows: Rows) -> list[str]:
    return sorted({row["dt"] for row in rows})


def added(rows: Iterable[Row], name: str) -> int:
    return sum(row.get(name) or 0 for row in rows)


def largest(rows: Iterable[Row], name: str) -> Any:
    """The largest value; None: there is none."""
    return max((row[name] for row in rows if row.get(name) is not None), default=None)


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return found


def bars(
    title: str, unit: Unit, series: Sequence[str], values: Iterable[tuple[str, Sequence[Any]]]
) -> Picture | None:
    """The first ones; None: nothing to draw."""
    points = [PicturePoint(name, list(them)) for name, them in values][:MAX_DRAWN]
    return _picture(PictureKind.BARS, title, unit, series, points)


def lines(
    title: str, unit: Unit, series: Sequence[str], values: Iterable[tuple[str, Sequence[Any]]]
) -> Picture | None:
    """None if there are fewer than two days: a line needs two points."""
    points = [PicturePoint(day, list(them)) for day, them in values]
    return _picture(PictureKind.LINES, title, unit, series, points) if len(points) > 1 else None


def _picture(
    kind: PictureKind, title: str, unit: Unit, series: Sequence[str], points: list[PicturePoint]
) -> Picture | None:
    if not any(value is not None for point in points for value in point.values):
        return None
    return Picture(kind=kind, title=title, unit=unit, series=list(series), points=points)
