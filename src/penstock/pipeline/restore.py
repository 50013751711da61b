"""Reconstructs from the lake which messages were live at an instant T.

A message was live at T if it was sent by then and had not finally ended.  Sources of a message, the
best first:

    the latest snapshot up to T         as it was then, unless it has ended since
    the first snapshot after T          it was sent before T, so it was live at T, too
    its first ending after T            with the body stored beside it

Attempts are counted from the lake's attempts.  Restored messages have no lease holder: leased ones
become ready.  A message that was sent after the lake's last snapshot and had not ended when the
store was lost is not in the lake and cannot be restored.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.domain.lake import layout as lake
from penstock.pipeline.job import Tables
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.schemas import DT, schema_of

_NAMES = [column.name for column in lake.SNAPSHOTS.columns]
SCHEMA = T.StructType([schema_of(lake.SNAPSHOTS)[name] for name in _NAMES])
INPUTS = ("history", "bodies", "attempts", "snapshots")

_COUNTED = ("failed", "expired", "timed_out", "crashed")
_FAILED = ("failed", "timed_out")


class RestoreFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages to restore; empty fields do not restrict."""

    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


class Bounds(msgspec.Struct, frozen=True):
    """The snapshots on both sides of the instant, by number."""

    base_no: int | None
    base_at: int | None
    next_no: int | None


def state_at(tables: Tables, *, at: int, bounds: Bounds) -> DataFrame:
    """One row per message, as a snapshot of that instant would have it."""
    snapshots = _snapshots(tables["snapshots"], at=at, bounds=bounds)
    endings = _endings(tables["history"], at=at)
    known = snapshots.join(endings, "message_no", "full_outer")
    there = known.where(_was_there(bounds)).join(
        _tries(tables["attempts"], endings, at=at), "message_no", "left"
    )
    bodies = tables["bodies"].select(
        F.col("history_no").alias("body_no"),
        F.col(DT).alias("body_dt"),
        *(F.col(name).alias(f"kept_{name}") for name in ("body", "attributes", "trace")),
    )
    ending = F.coalesce(F.col("next"), F.col("last"))
    joined = there.withColumns({"ending": ending, "asked_at": F.lit(at)}).join(
        bodies,
        F.col("snap").isNull()
        & (F.col("ending.history_no") == F.col("body_no"))
        & (F.col("ending.dt") == F.col("body_dt")),
        "left",
    )
    return joined.select(*_columns(at)).select(
        *(F.col(field.name).cast(field.dataType).alias(field.name) for field in SCHEMA)
    )


def pick(rows: DataFrame, wanted: RestoreFilter) -> DataFrame:
    if wanted.queues:
        rows = rows.where(F.col("queue").isin(*wanted.queues))
    if wanted.kinds:
        rows = rows.where(F.col("kind").isin(*wanted.kinds))
    if wanted.states:
        rows = rows.where(F.col("state").isin(*wanted.states))
    for tag in wanted.tags:
        rows = rows.where((F.col("tag1") == tag) | (F.col("tag2") == tag))
    return rows


def counts(rows: DataFrame) -> DataFrame:
    """Messages by queue and state, and how many of them have no body."""
    return (
        rows.groupBy("queue", "state")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.count(F.when(F.col("body").isNull(), 1)).alias("without_body"),
        )
        .orderBy("queue", "state")
    )


def tables_of(lake_: SparkLake) -> dict[str, DataFrame]:
    return {name: lake_.read(name) for name in INPUTS}


def bounds_of(snapshots: DataFrame, *, at: int) -> Bounds:
    """The last snapshot not after the instant, and the first one not before it."""
    taken = snapshots.select("snapshot_no", "taken_at").distinct()
    found = sorted((row.taken_at, row.snapshot_no) for row in taken.collect())
    before = [pair for pair in found if pair[0] <= at]
    after = [pair for pair in found if pair[0] >= at]
    base_at, base_no = before[-1] if before else (None, None)
    return Bounds(base_no, base_at, after[0][1] if after else None)


def queue_settings(lake_: SparkLake, bounds: Bounds) -> dict[str, str]:
    """Settings of the queues in the nearest snapshot: JSON by queue name."""
    number = bounds.base_no if bounds.base_no is not None else bounds.next_no
    rows = lake_.read("queues").where(F.col("snapshot_no") == F.lit(number))
    return {row.queue: row.settings for row in rows.select("queue", "settings").collect()}


def ended_messages(
    tables: Tables, *, from_at: int, to_at: int, outcomes: Sequence[str], wanted: RestoreFilter
) -> DataFrame:
    """Messages that ended in a period, `from_at <= finished_at < to_at`, with their bodies."""
    history = tables["history"].where(
        (F.col(DT) >= lake.dt_of(from_at))
        & (F.col(DT) <= lake.dt_of(to_at))
        & (F.col("finished_at") >= from_at)
        & (F.col("finished_at") < to_at)
    )
    if outcomes:
        history = history.where(F.col("outcome").isin(*outcomes))
    bodies = tables["bodies"].select("history_no", DT, "body", "attributes", "trace")
    return pick(history, msgspec.structs.replace(wanted, states=())).join(
        bodies, ["history_no", DT], "left"
    )


def _snapshots(snapshots: DataFrame, *, at: int, bounds: Bounds) -> DataFrame:
    """Each message from the snapshot before, or else from the one after, with its later state."""
    there = snapshots.where(F.col("sent_at") <= at)
    row = F.struct(*_NAMES)
    before = there.where(F.col("snapshot_no") == F.lit(bounds.base_no))
    after = there.where(F.col("snapshot_no") == F.lit(bounds.next_no))
    return (
        before.select("message_no", row.alias("base"))
        .join(after.select("message_no", row.alias("later")), "message_no", "full_outer")
        .select(
            "message_no",
            F.coalesce("base", "later").alias("snap"),
            F.col("base.taken_at").alias("base_at"),
            F.col("later.state").alias("later_state"),
        )
    )


def _endings(history: DataFrame, *, at: int) -> DataFrame:
    """The last ending up to the instant, and the first one after it."""
    row = F.struct(*(column.name for column in lake.HISTORY.columns), DT)
    order = F.struct("finished_at", "history_no")
    is_past = F.col("finished_at") <= at
    return (
        history.where(F.col("sent_at") <= at)
        .groupBy("message_no")
        .agg(
            F.max_by(F.when(is_past, row), F.when(is_past, order)).alias("last"),
            F.min_by(F.when(~is_past, row), F.when(~is_past, order)).alias("next"),
        )
    )


def _was_there(bounds: Bounds) -> Column:
    """True unless the message had finally ended: a dead one may still have been in a queue."""
    last_no = F.col("last")
    is_dead = F.col("last.outcome") == "dead"
    has_later = F.col("next").isNotNull() | F.col("snap").isNotNull()
    if bounds.base_at is None:
        is_at_rest = F.lit(True)
    else:
        # A message that died before a snapshot and is not in it was gone by then.
        is_at_rest = F.col("last.finished_at") > bounds.base_at
    return last_no.isNull() | (is_dead & (has_later | is_at_rest))


def _tries(attempts: DataFrame, endings: DataFrame, *, at: int) -> DataFrame:
    """Attempts since the message was last redriven."""
    lives = endings.select("message_no", F.col("last.finished_at").alias("born_at"))
    own = attempts.where(F.col("ended_at") <= at).join(lives, "message_no", "left")
    own = own.where(F.col("born_at").isNull() | (F.col("ended_at") > F.col("born_at")))

    def count(*outcomes: str) -> Column:
        return F.count(F.when(F.col("outcome").isin(*outcomes), 1))

    return own.groupBy("message_no").agg(
        count(*_COUNTED).alias("tried"),
        count(*_FAILED).alias("failed"),
        count("crashed").alias("crashed"),
        F.max("lease_no").alias("last_lease_no"),
        F.min("leased_at").alias("first_tried_at"),
        F.max_by("error", F.struct("ended_at", "attempt_no")).alias("latest_error"),
    )


def _columns(at: int) -> list[Column]:
    """Every column of a snapshot, each from the best source."""
    values = {name: _either(name) for name in _NAMES}
    is_dead = _is_at_rest()
    was_waiting = (F.col("snap.state") == "waiting") & (F.col("snap.due_at") > at)
    # A lease between the snapshot and the instant has changed the due date.
    lease_no = F.coalesce(F.greatest("last_lease_no", "last.lease_no"), F.lit(0))
    is_waiting = ~is_dead & was_waiting & (F.col("snap.lease_no") == lease_no)
    first = F.least("snap.first_leased_at", "ending.first_leased_at", "first_tried_at")
    state = F.when(is_dead, "dead").when(is_waiting, "waiting").otherwise("ready")
    values |= {
        "message_no": F.col("message_no"),
        "taken_at": F.lit(at),
        "queue": F.coalesce("next.queue", "snap.queue", "last.queue"),
        "queue_no": F.coalesce("next.queue_no", "snap.queue_no", "last.queue_no"),
        "state": state,
        "due_at": F.when(is_waiting, F.col("snap.due_at")).otherwise(_either("sent_at")),
        "order_no": F.coalesce("snap.order_no", "message_no"),
        "first_leased_at": F.when(first <= at, first),
        "leased_at": F.lit(None),
        "leased_by": F.lit(None),
        "attempts": _count("attempts", "tried", is_dead),
        "failures": _count("failures", "failed", is_dead),
        "crashes": _count("crashes", "crashed", is_dead),
        "lease_no": F.coalesce(
            F.greatest("snap.lease_no", "next.lease_no", "last.lease_no", "last_lease_no"),
            F.lit(0),
        ),
        "last_error": F.coalesce("latest_error", "snap.last_error", "last.last_error"),
        "reason": F.when(is_dead, F.coalesce("last.reason", "snap.reason")),
        "dedup_key": F.coalesce("snap.dedup_key", "ending.held_key"),
        "dedup_until": F.coalesce(
            "snap.dedup_until", F.when(F.col("ending.held_key").isNotNull(), "ended")
        ),
    }
    values |= {
        column.name: F.coalesce(f"snap.{column.name}", F.lit(False))
        for column in lake.SNAPSHOTS.columns
        if column.type is lake.Type.BOOL
    }
    values |= {
        name: F.coalesce(f"snap.{name}", f"kept_{name}") for name in ("body", "attributes", "trace")
    }
    return [values[name].alias(name) for name in _NAMES]


def _is_at_rest() -> Column:
    """Dead and, as far as is known, neither redriven nor moved by then."""
    died = F.col("last.outcome") == "dead"
    was_seen = F.col("base_at") >= F.coalesce(F.col("last.finished_at"), F.lit(0))
    is_same = F.col("next.queue") == F.col("last.queue")  # a dead letter ends in another queue
    was_back = F.coalesce(F.col("next.leased_at") <= F.col("asked_at"), F.lit(False))
    is_at_rest = (
        F.when(was_seen, F.col("snap.state") == "dead")
        .when(F.col("next").isNotNull(), died & is_same & ~was_back)
        .when(F.col("later_state").isNotNull(), died & (F.col("later_state") == "dead"))
        .otherwise(died)
    )
    return F.coalesce(is_at_rest, F.lit(False))


def _count(name: str, counted: str, is_dead: Column) -> Column:
    """For dead messages the count they died with; for others the sum of their attempts."""
    died_with = F.coalesce(f"last.{name}", f"snap.{name}")
    return F.when(is_dead, died_with).otherwise(F.coalesce(counted, F.lit(0)))


def _either(name: str) -> Column:
    """The value in the snapshot, or else in the ending."""
    in_history = {column.name for column in lake.HISTORY.columns}
    if name in in_history:
        return F.coalesce(f"snap.{name}", f"ending.{name}")
    return F.col(f"snap.{name}")
