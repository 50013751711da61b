"""What a job is: tables in, tables out, one partition a day.

    JOB = Job(
        name="waits",
        summary="how long messages waited, per queue",
        inputs=("lifecycle",),
        outputs=(Output(WAITS, waits),),
    )

`waits(tables, settings) -> DataFrame` is a pure transform: the frames of `tables` hold the days
that are asked for (and `lookback_days` before them), and its rows say by `dt` whose day they are.
When a day is to be computed again, whatever the table had of it is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from pyspark.sql import DataFrame

from penstock.pipeline.schemas import Derived
from penstock.pipeline.settings import JobSettings

Tables = Mapping[str, DataFrame]
Transform = Callable[[Tables, JobSettings], DataFrame]


class Output(msgspec.Struct, frozen=True):
    table: Derived
    transform: Transform


class Job(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    summary: str
    inputs: tuple[str, ...]  # names of tables: of the lake, or of jobs before this one
    outputs: tuple[Output, ...]
    after: tuple[str, ...] = ()  # jobs to be run before, though this one reads nothing of them
    lookback_days: int = 0  # a day's result also depends on so many days before it
    settings: tuple[str, ...] = ()  # those its results depend on: a change computes all anew
    version: int = 1  # raise it when the transform changes: all is computed anew
