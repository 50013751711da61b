"""The tables as views: in a Spark session, as statements for one, and as sources of dbt."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import yaml

from penstock.domain.lake.layout import ATTEMPTS, HISTORY, TABLES
from penstock.domain.lake.places import join
from penstock.files.delta_log import DeltaLog, DeltaSchema
from penstock.files.folder import open_folder
from penstock.pipeline.registry import computed_tables
from penstock.pipeline.views import create_views, spark_sql
from tests.edge.cli.conftest import Run, _no_settings_from_outside, run
from tests.edge.pipeline_tables import write_day, write_lake
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at

__all__ = ["_no_settings_from_outside", "run"]

EVERY_TABLE = [*TABLES, *computed_tables()]


def with_log(place: str) -> None:
    """Make it a Delta table with the files that are there."""
    schema = pa.schema([("queue", pa.string()), ("dt", pa.string())])
    files = open_folder(place, str).files()
    DeltaLog(place).create(DeltaSchema("slo", "", schema, ("dt",)), files)


@pytest.fixture
def dropped(spark):
    """Views belong to the session, which other tests share."""
    yield
    for name in EVERY_TABLE:
        spark.catalog.dropTempView(name)


@pytest.mark.usefixtures("dropped")
def test_a_session_gets_a_view_of_every_table(spark, driver: LakeDriver):
    driver.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})
    write_day(driver.folder / "derived", "slo", NEXT_DT, [{"queue": "mail", "bad": 2}])

    assert create_views(spark, str(driver.folder)) == EVERY_TABLE

    joined = spark.sql("SELECT dt, bad, burn FROM history LEFT JOIN slo USING (dt) ORDER BY dt")
    assert [tuple(row) for row in joined.collect()] == [(DT, None, None), (NEXT_DT, 2, None)]
    assert spark.table("snapshots").count() == 0, "a table without files is empty"
    assert spark.table("history").schema["dt"].dataType.simpleString() == "string"


@pytest.mark.usefixtures("dropped")
def test_the_statements_create_the_same_views_for_the_tables_that_exist(spark, driver: LakeDriver):
    driver.archive(HISTORY, {"queue": "it's"})
    driver.archive(ATTEMPTS, {})

    statements = [text for text in spark_sql(str(driver.folder)).split(";\n") if text.strip()]
    for statement in statements:
        spark.sql(statement)

    assert len(statements) == 2
    assert [row.queue for row in spark.table("history").collect()] == ["it's"]
    expected = driver.read("history").schema
    assert spark.table("history").schema.names == expected.names
    assert [f.dataType for f in spark.table("history").schema] == [f.dataType for f in expected]


def test_views_of_a_lake_elsewhere_are_printed_for_every_table(run: Run):
    ran = run("pipeline", "views", "--lake", "hdfs:///lake", "--tables", "hdfs:///gold")

    assert ran.out.count("CREATE OR REPLACE TEMPORARY VIEW ") == len(EVERY_TABLE)
    assert "OPTIONS (path 'hdfs:///lake/history');" in ran.out
    assert "OPTIONS (path 'hdfs:///gold/rollups');" in ran.out


def test_views_show_the_tables_of_the_settings_unless_a_lake_is_named(run: Run):
    tables = ("--set", "insights.folder=hdfs:///gold")

    configured = run("pipeline", "views", *tables, "--set", "archive.folder=hdfs:///lake").out
    named = run("pipeline", "views", *tables, "--lake", "hdfs:///other").out

    assert "(path 'hdfs:///lake/history')" in configured
    assert "(path 'hdfs:///gold/slo')" in configured
    assert "(path 'hdfs:///other/derived/slo')" in named


def test_views_in_an_object_store_have_paths_that_their_engine_can_open(
    run: Run, s3_place: str, tmp_path: Path
):
    with_log(join(s3_place, "derived/slo"))

    spark = run("pipeline", "views", "--lake", s3_place).out
    dbt = run("pipeline", "views", "--format", "dbt", "--lake", s3_place.replace("s3:", "s3a:")).out

    in_spark = s3_place.replace("s3:", "s3a:")
    assert spark.count("CREATE OR REPLACE TEMPORARY VIEW ") == len(EVERY_TABLE)
    assert f"USING parquet OPTIONS (path '{in_spark}/history');" in spark
    assert f"VIEW slo\nUSING delta OPTIONS (path '{in_spark}/derived/slo');" in spark
    assert f"read_parquet('{s3_place}/history/*/*.parquet'" in dbt
    assert f"delta_scan('{s3_place}/derived/slo')" in dbt


def test_sources_of_dbt_name_every_table_and_column_and_their_locations_are_read(
    run: Run, tmp_path: Path
):
    lake = tmp_path / "a lake"
    write_lake(lake, DT, [{"queue": "mail"}])
    write_day(lake / "derived", "slo", DT, [{"queue": "mail", "bad": 2}])

    ran = run("pipeline", "views", "--format", "dbt", "--lake", lake)

    [source] = yaml.safe_load(ran.out)["sources"]
    tables = {table["name"]: table for table in source["tables"]}
    assert list(tables) == EVERY_TABLE
    columns = [column["name"] for column in tables["snapshots"]["columns"]]
    assert columns == [*(c.name for c in TABLES["snapshots"].columns), "dt", "snapshot_no"]
    assert all(c["description"] for table in tables.values() for c in table["columns"])
    for name, expected in (("history", ("mail", DT)), ("slo", ("mail", DT))):
        location = tables[name]["config"]["external_location"]
        found = duckdb.execute(f"SELECT queue, dt FROM {location}").fetchall()
        assert found == [expected]


def test_views_of_a_delta_table_are_left_to_engines_that_know_delta_lake(run: Run, tmp_path: Path):
    write_day(tmp_path / "derived", "slo", DT, [{"queue": "mail"}])
    place = str(tmp_path / "derived" / "slo")
    with_log(place)

    spark = run("pipeline", "views", "--lake", tmp_path).out
    dbt = run("pipeline", "views", "--format", "dbt", "--lake", tmp_path).out

    assert f"VIEW slo\nUSING delta OPTIONS (path '{place}');" in spark
    assert f"delta_scan('{place}')" in dbt
