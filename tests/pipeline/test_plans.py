"""Physical plans of all jobs: what is read, and what is shuffled and sorted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.job import PipelineJob, TablesOfDays
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.registry import computed_tables, jobs, read_tables
from penstock.pipeline.runs import window
from penstock.pipeline.schemas import conform
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at, computed, day_after

LONG_AGO = day_after(DT, -60)
DAYS = (LONG_AGO, DT, NEXT_DT)

# The input tables of every output; an empty table would make all other checks pass.
SCANNED = {
    "quality": {"history", "attempts", "facts", "backlog"},
    "quarantine": {"history", "attempts", "facts", "backlog"},
    "lifecycle": {"history"},
    "rollups": {"lifecycle", "backlog"},
    "slo": {"lifecycle"},
    "slo_offenders": {"lifecycle"},
    "slo_budget": {"slo"},
    "known_workers": {"facts"},
    "flow_facts": {"history", "attempts", "facts"},
    "poison_messages": {"history", "attempts"},
    "poison_kinds": {"history"},
    "poison_releases": {"history", "known_workers"},
    "flapping_routes": {"facts"},
    "silent_workers": {"facts", "attempts"},
    "capacity": {"rollups", "backlog"},
    "outage_cost": {"history", "attempts", "facts"},
    "starvation": {"history", "known_workers", "outage_cost"},
    "breaker_tuning": {"history", "attempts", "backlog"},
    "scaling_backtest": {"lifecycle"},
}
_SETTINGS = {
    "spark.sql.maxMetadataStringLength": "10000",  # of a list of files or filters in a plan
    # Plans of large tables: these are so small that Spark would broadcast all of them.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory) -> Iterator[SparkLake]:
    driver = LakeDriver(spark, tmp_path_factory.mktemp("plans") / "lake")
    for day in DAYS:
        driver.archive(HISTORY, {"finished_at": at("12:00:00", day), "route": "/a"})
        driver.archive(ATTEMPTS, {"ended_at": at("12:00:00", day)})
        driver.archive(BACKLOG, {"at": at("12:00:00", day)})
        driver.archive(FACTS, {"at": at("12:00:00", day)})
    for name in sorted(read_tables() & set(computed_tables())):  # as if jobs had computed them
        table = computed_tables()[name]
        rows = computed(spark, table, *({"dt": day} for day in DAYS))
        driver.lake.replace(table, rows, DAYS)
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    yield driver.lake
    for name in _SETTINGS:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def plans(lake) -> dict[str, str]:
    """The plans for one day, by output."""
    return {
        output.table.name: _plan(lake, made, number)
        for made in jobs()
        for number, output in enumerate(made.outputs)
    }


def _plan(lake: SparkLake, made: PipelineJob, number: int) -> str:
    read = {table: window([NEXT_DT], made, table) for table in made.inputs}
    tables = TablesOfDays(
        {table: lake.read(table, days) for table, days in read.items()}, [NEXT_DT]
    )
    output = made.outputs[number]
    rows = conform(output.transform(tables, PipelineSettings()), output.table)
    return _physical(rows.where(F.col("dt").isin(NEXT_DT)))


def _physical(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("output", SCANNED)
def test_a_job_reads_only_its_tables_and_of_these_only_its_days(plans, output):
    plan = plans[output]
    scanned = re.findall(r"/([a-z_]+)/dt=(\d{4}-\d\d-\d\d)", plan)

    assert {table for table, _ in scanned} == SCANNED[output]
    assert "LocalTableScan" not in plan
    assert NEXT_DT in {day for _, day in scanned}
    assert LONG_AGO not in {day for _, day in scanned}


def test_there_are_plans_of_all_outputs(plans):
    assert set(plans) == set(SCANNED)


@pytest.mark.parametrize("output", SCANNED)
def test_no_job_has_a_cartesian_product(plans, output):
    assert "CartesianProduct" not in plans[output]
    assert "BroadcastNestedLoopJoin" not in plans[output]


@pytest.mark.parametrize("output", sorted(SCANNED.keys() - {"quarantine"}))
def test_no_job_reads_columns_that_no_job_needs(plans, output):
    unused = {"held_key", "entity_id", "reason"}
    columns = [c for names in _columns(plans[output]).values() for c in names]

    assert unused <= {column.name for column in HISTORY.columns}
    assert columns
    assert unused.isdisjoint(columns)


@pytest.mark.parametrize(
    ("output", "table", "conditions"),
    [
        ("capacity", "rollups", {"EqualTo(dimension,queue)"}),
        ("scaling_backtest", "lifecycle", {"GreaterThan(attempts,0)"}),
        ("starvation", "history", {"IsNotNull(first_leased_at)"}),
        ("outage_cost", "history", {"IsNotNull(route)"}),
        ("breaker_tuning", "history", {"IsNotNull(route)"}),
        ("known_workers", "facts", {"EqualTo(kind,worker_registered)"}),
    ],
)
def test_conditions_reach_the_files(plans, output, table, conditions):
    pushed = _scans(plans[output], table, r"PushedFilters: \[(.*?)\], ReadSchema")

    assert pushed
    assert all(conditions <= set(one.split(", ")) for one in pushed)


def test_minutes_are_read_of_the_day_to_compute_and_of_earlier_ones_only_the_sums_of_days(plans):
    lines = [one for one in plans["capacity"].splitlines() if "EqualTo(grain," in one]
    grains = {
        (grain, day)
        for one in lines
        for grain in re.findall(r"EqualTo\(grain,(\w+)\)", one)
        for day in re.findall(r"/rollups/dt=([\d-]+)", one)
    }

    assert grains >= {("minute", NEXT_DT), ("day", DT)}
    assert len(lines) == len(_scans(plans["capacity"], "rollups", r"(ReadSchema)"))
    for one in lines:
        [filters] = re.findall(r"PartitionFilters: \[(.*?)\], PushedFilters", one)
        assert ("NOT" in filters) == ("EqualTo(grain,day)" in one)


def test_only_the_columns_that_are_needed_are_read(plans):
    assert "finished_at" in _columns(plans["rollups"])["lifecycle"]
    assert {"sent_at", "id"}.isdisjoint(_columns(plans["rollups"])["lifecycle"])
    assert _columns(plans["scaling_backtest"])["lifecycle"] == {
        "queue",
        "sent_at",
        "service_ms",
        "attempts",
    }
    assert "wait_histogram" not in _columns(plans["capacity"])["rollups"]


# Sorts of single rows of large tables, not of their sums.  Each other one would be unintended.
SORTED = {
    "lifecycle": set(),
    "rollups": set(),
    "slo": set(),
    "slo_offenders": set(),
    "poison_kinds": set(),
    # To join it with the workers and with the messages in trouble, if these are many.
    "poison_releases": {("history", "dt, leased_by")},
    "poison_messages": {("history", "dt, message_no"), ("history", "dt, message_no, worker")},
    "starvation": {("history", "dt, leased_by"), ("history", "dt, route")},
    "outage_cost": {("history", "dt, route"), ("history", "message_no")},
    # Replays take messages in order.
    "scaling_backtest": {("lifecycle", "dt, queue")},
    "breaker_tuning": {
        ("history", "dt, route, at, message_no, is_failure"),
        ("history", "message_no"),
    },
}


@pytest.mark.parametrize("output", SORTED)
def test_rows_are_sorted_only_where_that_is_intended(plans, output):
    found = {(t, names) for t, names in _row_sorts(plans[output]) if t in ("history", "lifecycle")}

    assert found == SORTED[output]


def test_rows_of_lifecycle_are_not_shuffled(plans):
    assert "Exchange" not in plans["lifecycle"]


def test_rollups_shuffle_once_sums_instead_of_rows(plans):
    plan = plans["rollups"]

    assert plan.count("Exchange") == 1
    # The rows are added up before they are shuffled: the exchange is above that step.
    [added_up] = re.finditer(r"\bpartials\(", plan)
    assert plan.index("Exchange") < added_up.start()


def test_arrivals_and_calls_are_shuffled_and_replayed_once_for_all_candidates(plans):
    assert plans["scaling_backtest"].count("FlatMapGroupsInArrow") == 1
    assert plans["breaker_tuning"].count("MapInArrow") == 1


@pytest.mark.parametrize("output", ["outage_cost", "starvation", "poison_messages"])
def test_jobs_over_messages_need_no_python(plans, output):
    assert re.search(r"InArrow|ArrowEvalPython|InPandas", plans[output]) is None


def test_no_side_that_grows_with_the_data_is_forced_to_be_broadcast(plans):
    forced = {output for output, plan in plans.items() if "BroadcastExchange" in plan}

    # By day, when a clock was set back; by 32,768 numbers, where some occur twice.
    assert forced == {"quality", "quarantine"}


def _scans(plan: str, table: str, pattern: str) -> list[str]:
    lines = [one for one in plan.splitlines() if "FileScan" in one and f"/{table}/dt=" in one]
    return [match[1] for one in lines if (match := re.search(pattern, one))]


def _columns(plan: str) -> dict[str, set[str]]:
    """The columns that are read, by table."""
    found: dict[str, set[str]] = {}
    for table in set(re.findall(r"/([a-z_]+)/dt=", plan)):
        for schema in _scans(plan, table, r"ReadSchema: struct<(.*)>"):
            found.setdefault(table, set()).update(re.findall(r"(\w+):", schema))
    return found


_REDUCES = {
    *("HashAggregate", "ObjectHashAggregate", "SortAggregate"),
    *("Window", "MapInArrow", "FlatMapGroupsInArrow"),
}


def _row_sorts(plan: str) -> Iterator[tuple[str, str]]:
    """Tables and the columns by which their rows are sorted before they are reduced."""
    path: list[tuple[int, str, str]] = []
    for line in plan.splitlines():
        node = re.match(r"([ :+-]*)(?:\*\(\d+\) )?([A-Z]\w+)", line)
        if node is None:
            continue
        depth = len(node[1])
        path = [above for above in path if above[0] < depth]
        if table := re.search(r"FileScan.*?/([a-z_]+)/dt=", line):
            for _, name, text in reversed(path):
                if name in _REDUCES:
                    break
                if name == "Sort":
                    columns = re.findall(r"([a-z]\w*)#\d+L? ASC", text)
                    yield table[1], ", ".join(columns)
        path.append((depth, node[2], line))
