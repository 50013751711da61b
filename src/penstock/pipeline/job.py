"""The definition of a job: input tables, output tables, one partition per day.

    JOB = PipelineJob(
        name="waits",
        summary="how long messages waited, per queue",
        inputs=("lifecycle",),
        outputs=(JobOutput(WAITS, waits),),
    )

`waits(tables, settings) -> DataFrame` is a pure transform: the frames of `tables` hold the
requested days (and `lookback_days` before them), and the column `dt` of the result is the day that
a row belongs to.  When a day is computed again, its rows in the table are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.schemas import DT, ComputedTable

Tables = Mapping[str, DataFrame]
Transform = Callable[[Tables, PipelineSettings], DataFrame]


class TablesOfDays(dict[str, DataFrame]):
    """Tables, and the days to compute: Spark does not skip other days for a step in Python."""

    def __init__(self, frames: Mapping[str, DataFrame], days: Collection[str]) -> None:
        super().__init__(frames)
        self.days = sorted(days)


def only_wanted_days(rows: DataFrame, tables: Tables) -> DataFrame:
    """The rows of the days to compute, or all rows if the tables do not name these days."""
    return rows.where(_is_wanted(tables))


def only_earlier_days(rows: DataFrame, tables: Tables) -> DataFrame:
    """The rows of the days that were loaded besides these."""
    return rows.where(~_is_wanted(tables))


def _is_wanted(tables: Tables) -> Column:
    return F.col(DT).isin(tables.days) if isinstance(tables, TablesOfDays) else F.lit(True)


class JobOutput(msgspec.Struct, frozen=True):
    table: ComputedTable
    transform: Transform


class PipelineJob(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    summary: str
    inputs: tuple[str, ...]  # names of tables: of the lake, or of earlier jobs
    outputs: tuple[JobOutput, ...]
    after: tuple[str, ...] = ()  # jobs that must run first although this one does not read them
    lookback_days: int = 0  # how many earlier days a day's result also depends on
    only_own_day: tuple[str, ...] = ()  # inputs of which earlier days do not matter
    settings: tuple[str, ...] = ()  # the results depend on these: a change recomputes all days
    version: int = 1  # raise it when the transform changes: all days are recomputed
