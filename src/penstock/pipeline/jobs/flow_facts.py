"""One row per flow that ended: its members, where its time went, and what it had to wait for.

The critical path goes back from the member that ended last to the parent that ended last before
that member was sent, and so on: had one of these been faster, the flow would have ended earlier.
Members that were never sent (skipped, or cancelled while they waited) are counted by the broker and
have no times.  Callbacks are not members.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.domain.flow.flow import FLOW_ENDED
from penstock.domain.flow.member import MemberRole
from penstock.domain.lake.layout import ATTEMPTS, FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables, only_wanted_days
from penstock.pipeline.schemas import DT, ComputedTable, integer, long, text

DAYS = 7  # members that ended earlier than this before their flow are not found
PATH_NAMES = 50  # of a longer path the last members are named
_BY = "flow_no"

FLOW_FACTS = ComputedTable(
    name="flow_facts",
    meaning="one row per flow and day on which it ended",
    fields=(
        long("flow_no", "number of the flow"),
        text("id", "id of the flow"),
        text("name", "name of the flow"),
        text("outcome", "done, failed or cancelled"),
        long("created_at", "when it was enqueued"),
        long("ended_at", "when its last member ended"),
        long("duration_ms", "from one to the other"),
        long("members", "its members, without callbacks"),
        long("done", "members that are done"),
        long("failed", "members that are dead or were cancelled"),
        long("skipped", "members that were not needed"),
        long("found", "members with times in the lake: those that were sent and ended in 7 days"),
        long("attempts", "claims of these that count"),
        long("steps", "durable steps that they recorded"),
        long("work_ms", "how long they were leased, together"),
        long("wait_ms", "how long they waited in queues and for retries, together"),
        long("suspended_ms", "how long they slept or waited for signals, together"),
        long("critical_ms", "length of the critical path, from its first member's send"),
        integer("critical_members", "members on it"),
        text("critical_path", "their names in order, with ` > `; of more than 50 the last ones"),
        long("critical_work_ms", "how long they were leased"),
        long("critical_wait_ms", "how long they waited in queues and for retries"),
        long("critical_suspended_ms", "how long they slept or waited for signals"),
        text("slowest_member", "the member that took longest from send to end"),
        text("slowest_kind", "the kind of this member"),
        long("slowest_ms", "how long it took"),
    ),
)


def flow_facts(tables: Tables, settings: PipelineSettings) -> DataFrame:
    flows = _flows(only_wanted_days(tables["facts"], tables))
    members = _members(tables, flows)
    summed = members.groupBy(DT, _BY).agg(
        F.count(F.lit(1)).alias("found"),
        *(F.sum(name).alias(name) for name in ("attempts", "steps", *_TIMES)),
        F.max_by(F.struct("label", "kind", "total_ms"), F.struct("total_ms", "message_no")).alias(
            "slowest"
        ),
    )
    named = summed.withColumns(
        {
            "slowest_member": F.col("slowest.label"),
            "slowest_kind": F.col("slowest.kind"),
            "slowest_ms": F.col("slowest.total_ms"),
        }
    )
    found = flows.join(named, [DT, _BY], "left").join(_critical(members), [DT, _BY], "left")
    return found.withColumns(
        {
            "found": F.coalesce("found", F.lit(0)),
            "duration_ms": F.col("ended_at") - F.col("created_at"),
        }
    )


_TIMES = ("work_ms", "wait_ms", "suspended_ms")


def _flows(facts: DataFrame) -> DataFrame:
    """The last ending of each flow on a day: a redriven one ends again."""
    numbers = ("flow_no", "created_at", "members", "done", "failed", "skipped")
    ended = sound_rows(facts, FACTS).where(F.col("kind") == FLOW_ENDED)
    last = ended.groupBy(DT, F.col("subject").alias("id")).agg(
        F.max("at").alias("ended_at"),
        F.max_by("data", F.struct("at", "fact_no")).alias("data"),
    )
    return last.select(
        *(DT, "id", "ended_at"),
        *(_of_data(name) for name in ("name", "outcome")),
        *(
            _of_data("total" if name == "members" else name).try_cast("long").alias(name)
            for name in numbers
        ),
    ).where("flow_no IS NOT NULL")


def _of_data(name: str) -> Column:
    return F.get_json_object("data", f"$.{name}").alias(name)


def _members(tables: Tables, flows: DataFrame) -> DataFrame:
    """The last ending of each member up to the end of its flow, with its times."""
    ends = flows.select(DT, _BY, F.col("ended_at").alias("flow_ended_at"))
    is_member = F.col("flow_role").isNull() | (F.col("flow_role") == MemberRole.MEMBER.value)
    history = sound_rows(tables["history"].where("flow_no IS NOT NULL"), HISTORY)
    attempts = sound_rows(tables["attempts"].where("flow_no IS NOT NULL"), ATTEMPTS)
    endings = history.where(is_member).drop(DT).join(ends, _BY)
    names = (*_ENDING, "finished_at")
    last = (
        endings.where("finished_at <= flow_ended_at")
        .groupBy(DT, _BY, "message_no")
        .agg(F.max_by(F.struct(*names), F.struct("finished_at", "history_no")).alias("ending"))
        .select(DT, _BY, "message_no", *(f"ending.{name}" for name in names))
    )
    tried = (
        attempts.drop(DT)
        .join(ends, _BY)
        .where("ended_at <= flow_ended_at")
        .groupBy(DT, _BY, "message_no")
        .agg(F.sum(F.col("ended_at") - F.col("leased_at")).alias("tried_ms"))
    )
    # The last lease of a message that is done is in no attempt.
    is_done = F.col("outcome") == State.DONE.value
    last_ms = F.when(is_done, F.col("finished_at") - F.col("leased_at"))
    work = F.coalesce(last_ms, F.lit(0)) + F.coalesce("tried_ms", F.lit(0))
    total, suspended = F.col("finished_at") - F.col("sent_at"), F.col("suspended_ms")
    return (
        last.join(tried, [DT, _BY, "message_no"], "left")
        .withColumn("suspended_ms", F.coalesce(suspended, F.lit(0)))
        .withColumns(
            {
                "label": F.coalesce("member_name", "kind", "id"),
                "steps": F.coalesce("step_count", F.lit(0)),
                "work_ms": work,
                "total_ms": total,
                "wait_ms": F.greatest(total - work - suspended, F.lit(0)),
            }
        )
    )


_ENDING = (
    *("id", "kind", "outcome", "member_name", "flow_parents", "sent_at", "leased_at"),
    *("attempts", "step_count", "suspended_ms"),
)


def _critical(members: DataFrame) -> DataFrame:
    """The critical path of each flow.

    A parent ends before its child, so one walk over the members, the last to end first, meets the
    members of the path in order.
    """
    parents = members.select(
        DT, _BY, F.col("message_no").alias("parent_no"), F.col("finished_at").alias("parent_at")
    )
    waited = members.select(
        *(DT, _BY, "message_no", "sent_at"),
        F.explode(F.split("flow_parents", ",")).alias("parent"),
    ).withColumn("parent_no", F.col("parent").try_cast("long"))
    released_by = (
        waited.join(parents, [DT, _BY, "parent_no"])
        .where("parent_at <= sent_at")
        .groupBy(DT, _BY, "message_no")
        .agg(F.max_by("parent_no", F.struct("parent_at", "parent_no")).alias("parent_no"))
    )
    columns = ("finished_at", "sent_at", "message_no", "parent_no", "label", *_TIMES)
    walks = (
        members.join(released_by, [DT, _BY, "message_no"], "left")
        .groupBy(DT, _BY)
        .agg(F.sort_array(F.collect_list(F.struct(*columns)), asc=False).alias("walk"))
    )
    path = walks.select(DT, _BY, F.aggregate("walk", _start(F.col("walk")[0]), _step).alias("path"))
    return path.select(
        DT,
        _BY,
        (F.col("path.until_at") - F.col("path.from_at")).alias("critical_ms"),
        F.col("path.count").alias("critical_members"),
        F.concat_ws(" > ", F.reverse("path.names")).alias("critical_path"),
        *(F.col(f"path.{name}").alias(f"critical_{name}") for name in _TIMES),
    )


def _start(last: Column) -> Column:
    zero = F.lit(0).cast("long")
    return F.struct(
        last["message_no"].alias("next_no"),
        last["sent_at"].alias("from_at"),
        last["finished_at"].alias("until_at"),
        F.lit(0).alias("count"),
        F.array().cast("array<string>").alias("names"),
        *(zero.alias(name) for name in _TIMES),
    )


def _step(path: Column, member: Column) -> Column:
    is_named = path["count"] < PATH_NAMES
    names = F.when(is_named, F.concat(path["names"], F.array(member["label"])))
    longer = F.struct(
        member["parent_no"].alias("next_no"),
        member["sent_at"].alias("from_at"),
        path["until_at"].alias("until_at"),
        (path["count"] + 1).alias("count"),
        F.coalesce(names, path["names"]).alias("names"),
        *((path[name] + member[name]).alias(name) for name in _TIMES),
    )
    return F.when(member["message_no"].eqNullSafe(path["next_no"]), longer).otherwise(path)


JOB = PipelineJob(
    name="flow_facts",
    summary="one row per flow: members, outcome, critical path, working and waiting time",
    inputs=("history", "attempts", "facts"),
    outputs=(JobOutput(FLOW_FACTS, flow_facts),),
    after=("quality",),
    lookback_days=DAYS - 1,
    only_own_day=("facts",),
)
