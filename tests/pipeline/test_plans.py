"""Physical plans of the heaviest jobs: what is read, and what is shuffled and sorted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame

from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.jobs.lifecycle import LIFECYCLE
from penstock.pipeline.jobs.rollups import ROLLUPS
from penstock.pipeline.jobs.slo import SLO
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.registry import job, jobs
from penstock.pipeline.schemas import conform
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at, computed

_LENGTH = "spark.sql.maxMetadataStringLength"  # of a list of files or filters in a plan


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory) -> Iterator[SparkLake]:
    bench = LakeDriver(spark, tmp_path_factory.mktemp("plans") / "lake")
    for day in (DT, NEXT_DT):
        bench.archive(HISTORY, {"finished_at": at("12:00:00", day), "route": "/a"})
        bench.archive(ATTEMPTS, {"ended_at": at("12:00:00", day)})
        bench.archive(BACKLOG, {"at": at("12:00:00", day)})
        bench.archive(FACTS, {"at": at("12:00:00", day)})
    for table in (LIFECYCLE, ROLLUPS, SLO):  # as if jobs had computed them
        rows = computed(spark, table, {"dt": DT}, {"dt": NEXT_DT})
        bench.lake.replace(table, rows, [DT, NEXT_DT])
    spark.conf.set(_LENGTH, 10_000)
    yield bench.lake
    spark.conf.unset(_LENGTH)


def plan_of(lake: SparkLake, name: str, output: int = 0) -> str:
    """The plan of a job for one day."""
    made = job(name)
    tables = {table: lake.read(table, [NEXT_DT]) for table in made.inputs}
    found = made.outputs[output]
    rows = conform(found.transform(tables, PipelineSettings()), found.table)
    return physical(rows)


def physical(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


def test_no_job_has_a_cartesian_product(lake):
    for made in jobs():
        for output in range(len(made.outputs)):
            plan = plan_of(lake, made.name, output)
            assert "CartesianProduct" not in plan, made.name
            assert "BroadcastNestedLoopJoin" not in plan, made.name


def test_a_job_reads_only_the_files_of_its_days(lake):
    plan = plan_of(lake, "lifecycle")

    assert f"history/dt={NEXT_DT}" in plan
    assert f"history/dt={DT}" not in plan


def test_rows_of_lifecycle_are_neither_shuffled_nor_sorted(lake):
    plan = plan_of(lake, "lifecycle")

    assert "Exchange" not in plan
    assert "Sort" not in plan


def test_conditions_reach_the_files_and_only_the_columns_that_are_needed_are_read(lake):
    of_minutes, *_ = re.findall(r"PushedFilters: \[(.*?)\], ReadSchema", plan_of(lake, "capacity"))
    columns, *_ = re.findall(r"ReadSchema: struct<(.*?)>", plan_of(lake, "rollups"))

    assert {"EqualTo(dimension,queue)", "EqualTo(grain,minute)"} <= set(of_minutes.split(", "))
    assert "finished_at:" in columns
    assert "sent_at:" not in columns


def test_rollups_shuffle_once_sums_instead_of_rows(lake):
    plan = plan_of(lake, "rollups")

    assert plan.count("Exchange") == 1
    # The rows are added up before they are shuffled: the exchange is above that step.
    [added_up] = re.finditer(r"\bpartials\(", plan)
    assert plan.index("Exchange") < added_up.start()


def test_arrivals_and_calls_are_shuffled_once_for_all_candidates(lake):
    assert plan_of(lake, "scaling_backtest").count("FlatMapGroupsInArrow") == 1
    tuning = plan_of(lake, "breaker_tuning")
    assert "FlatMapCoGroupsInArrow" in tuning
