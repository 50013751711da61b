"""Checks of the lake's rows: one cheap condition per kind of problem.

A row without problems is sound.  Jobs read sound rows only; the others go into quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable, Type
from penstock.domain.limits import DAY
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State
from penstock.pipeline.schemas import DT

ENDINGS = (State.DONE, State.DEAD, State.CANCELLED)
LIVE = ("waiting", "ready", "leased")
ENDED_TOTALS = ("done_total", "dead_total", "cancelled_total")
ALWAYS_STOPS = ("out_of_balance",)  # the day of such a row is never loaded
# Of rows whose clock was set back between two of their instants.
CLOCK_PROBLEMS = ("negative_wait", "negative_service", "negative_total", "claims_out_of_order")
DOUBLED = "doubled"  # several rows of a day share their number
COUNTED = ("size", *LIVE, *ENDED_TOTALS, "sent_total")
MOST_COUNTED = 2**48  # sums of such numbers over a day do not overflow


def problems_of(table: LakeTable) -> dict[str, Column]:
    """Conditions by problem: true for rows that have the problem, never null."""
    found = {"missing_value": _missing(table), "wrong_day": _wrong_day(table)}
    numbers = [c.name for c in table.columns if c.type in (Type.INT, Type.LONG)]
    found["negative_number"] = _any(
        F.col(name) < 0 for name in numbers if name not in ("priority",)
    )
    if counted := [c.name for c in table.columns if c.name in COUNTED]:
        found["huge_number"] = _any(F.col(name) > MOST_COUNTED for name in counted)
    found |= _OF.get(table.name, dict)()
    return {name: F.coalesce(is_bad, F.lit(False)) for name, is_bad in found.items()}


def sound_rows(rows: DataFrame, table: LakeTable) -> DataFrame:
    found = problems_of(table)
    return rows.where(~_any(is_bad for name, is_bad in found.items() if name not in ALWAYS_STOPS))


def with_problems(rows: DataFrame, table: LakeTable) -> DataFrame:
    """The rows that have problems, with the names of these in the column `problems`."""
    named = [F.when(is_bad, F.lit(name)) for name, is_bad in problems_of(table).items()]
    found = F.array_compact(F.array(*named))
    return rows.withColumn("problems", found).where(F.size("problems") > 0)


def counts_of(
    rows: DataFrame, number: str, conditions: Mapping[str, Column] | None = None
) -> DataFrame:
    """Per day: `rows`, how many meet each condition, and how many repeat a number (`doubled`).

    Exact, but does not shuffle all rows: numbers are dense, so bitmaps count the distinct ones.
    """
    given = conditions or {}
    distinct = F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position(number)))
    by_bitmap = rows.groupBy(DT, F.bitmap_bucket_number(number).alias("place")).agg(
        F.count(F.lit(1)).alias("rows"),
        (F.count(number) - distinct).alias(DOUBLED),
        *(F.count_if(is_met).alias(name) for name, is_met in given.items()),
    )
    names = ("rows", DOUBLED, *given)
    return by_bitmap.groupBy(DT).agg(*(F.sum(name).alias(name) for name in names))


def doubled_rows(rows: DataFrame, number: str) -> DataFrame:
    """Rows of a day that share their number; only those near a repeated one are shuffled."""
    place = F.bitmap_bucket_number(number)
    distinct = F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position(number)))
    suspect = (
        rows.groupBy(DT, place.alias("place"))
        .agg(F.count(number).alias("rows"), distinct.alias("numbers"))
        .where(F.col("rows") > F.col("numbers"))
        .select(F.col(DT).alias("suspect_dt"), "place")
    )
    on = (F.col(DT) == F.col("suspect_dt")) & (place == F.col("place"))
    near = rows.join(F.broadcast(suspect), on=on, how="left_semi")
    alike = F.count(F.lit(1)).over(Window.partitionBy(DT, number))
    return near.withColumn("alike", alike).where("alike > 1").drop("alike")


def _missing(table: LakeTable) -> Column:
    return _any(F.col(c.name).isNull() for c in table.columns if not c.is_nullable)


def _wrong_day(table: LakeTable) -> Column:
    # Days as numbers: formatting them as text takes longer than all the other checks.
    is_other = F.expr(f"{table.instant} div {DAY}") != F.unix_date(F.col(DT).try_cast("date"))
    return F.when(F.col(table.instant).isNotNull(), F.coalesce(is_other, F.lit(True)))


def _history() -> dict[str, Column]:
    return {
        "negative_wait": F.col("first_leased_at") < F.col("sent_at"),
        "negative_service": F.col("finished_at") < F.col("leased_at"),
        "negative_total": F.col("finished_at") < F.col("sent_at"),
        "claims_out_of_order": F.col("leased_at") < F.col("first_leased_at"),
        "unknown_outcome": ~F.col("outcome").isin([state.value for state in ENDINGS]),
    }


def _attempts() -> dict[str, Column]:
    return {
        "negative_service": F.col("ended_at") < F.col("leased_at"),
        "unknown_outcome": ~F.col("outcome").isin([outcome.value for outcome in AttemptOutcome]),
    }


def _backlog() -> dict[str, Column]:
    # As decimals: impossible counters must fail this check, not overflow.
    counters = [F.col(name).cast("decimal(20, 0)") for name in (*LIVE, *ENDED_TOTALS)]
    ended_and_live = reduce(Column.__add__, counters)
    return {"out_of_balance": F.col("sent_total") != ended_and_live}


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__or__, conditions)


_OF: dict[str, Callable[[], dict[str, Column]]] = {
    lake.HISTORY.name: _history,
    lake.ATTEMPTS.name: _attempts,
    lake.BACKLOG.name: _backlog,
}
