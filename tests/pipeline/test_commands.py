"""The commands of `penstock pipeline`, in the session of these tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.domain.datetimes import parse_instant
from penstock.domain.lake.layout import HISTORY
from penstock.edge.cli.pipeline import stream
from penstock.edge.cli.pipeline.spark_command import lock_tables
from penstock.pipeline import session as sessions
from penstock.pipeline.registry import MODULES
from penstock.settings import load
from tests.edge.cli.conftest import Run, _no_settings_from_outside, run
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, NOON, at

__all__ = ["_no_settings_from_outside", "run"]


@pytest.fixture(autouse=True)
def same_session(spark, monkeypatch):
    """A command opens a session and stops it in the end; here it gets ours, which stays open."""
    asked: list[object] = []

    def opened(master=None, *, more=None, environ=None, is_verbose=False):
        asked.append((master, dict(more or {})))
        return spark

    monkeypatch.setattr(sessions, "open_session", opened)
    monkeypatch.setattr(spark, "stop", lambda: asked.append("stopped"))
    return asked


def test_a_run_prints_each_job_and_day_with_its_rows(run: Run, driver: LakeDriver):
    driver.archive(HISTORY, {}, {})

    ran = run("pipeline", "run", "lifecycle", "--lake", driver.folder, "--json")

    assert ran.code == 0
    assert [(r["job"], r["dt"], r["status"]) for r in ran.records] == [
        ("quality", DT, "done"),
        ("lifecycle", DT, "done"),
    ]
    assert ran.records[1]["rows_out"] == {"lifecycle": 2}
    assert "penstock: lifecycle: 1 day" in ran.err


def test_days_a_master_and_spark_settings_can_be_given(run: Run, driver: LakeDriver, same_session):
    driver.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})

    ran = run(
        "pipeline", "run", "quality", "--lake", driver.folder, "--from", NEXT_DT, "--to", NEXT_DT,
        "--master", "local[1]", "--conf", "spark.x=1", "--conf", "spark.y=2", "--json",
    )  # fmt: skip

    assert [r["dt"] for r in ran.records] == [NEXT_DT]
    assert same_session == [("local[1]", {"spark.x": "1", "spark.y": "2"}), "stopped"]


def test_a_day_that_is_refused_ends_the_command_with_a_code_and_a_reason(
    run: Run, driver: LakeDriver
):
    driver.archive(HISTORY, {"sent_at": NOON})

    ran = run("pipeline", "run", "lifecycle", "--lake", driver.folder)

    assert ran.code == 1
    assert f"{DT} (load_refused)" in ran.err
    assert "negative_wait (1 of 1)" in ran.out


def test_with_nothing_new_there_is_nothing_to_compute(run: Run, computed_lake: LakeDriver):
    ran = run("pipeline", "run", "quality", "--lake", computed_lake.folder)

    assert (ran.code, ran.out) == (0, "nothing to compute: no day has changed\n")


def test_a_lake_that_does_not_exist_is_an_error_and_not_an_empty_one(run: Run, tmp_path: Path):
    ran = run("pipeline", "run", "--lake", tmp_path / "typo")

    assert ran.code == 1
    assert "is empty; run penstock archive run first" in ran.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "rollup"), "did you mean 'rollups'"),
        (("run", "--from", "yesterday"), "is not a day such as 2030-01-31"),
        (("run", "--conf", "spark.x"), "is not NAME=VALUE"),
        (("demo", "--messages", "many"), "is not a number of 1 or more"),
    ],
)
def test_invalid_arguments_are_reported_before_spark_is_started(
    run: Run, same_session, words: tuple[str, ...], expected: str
):
    ran = run("pipeline", *words)

    assert ran.code in (1, 2)
    assert expected in ran.err
    assert same_session == []


def test_the_status_shows_what_was_computed_and_what_is_stale(run: Run, computed_lake: LakeDriver):
    computed_lake.archive(HISTORY, {})

    ran = run("pipeline", "status", "--lake", computed_lake.folder, "--json")

    found = {record["job"]: record for record in ran.records}
    assert list(found) == list(MODULES)
    assert found["lifecycle"]["days"] == 2
    assert found["lifecycle"]["to_compute"] == [DT]
    assert found["lifecycle"]["rows"] == 2
    assert found["rollups"]["to_compute"] == [DT, NEXT_DT]


def test_all_jobs_are_listed_with_their_tables(run: Run):
    ran = run("pipeline", "--json")

    assert [record["job"] for record in ran.records] == list(MODULES)
    assert all(record["tables"] for record in ran.records)


def test_a_demo_writes_a_lake_and_prints_its_contents(run: Run, tmp_path: Path):
    ran = run(
        "pipeline", "demo", tmp_path / "d", "--messages", "1_000", "--days", 2, "--only-lake",
        "--json",
    )  # fmt: skip

    assert ran.record["rows"]["history"] > 900
    assert (ran.record["from"], ran.record["to"]) == ("2030-01-01", "2030-01-02")
    assert (tmp_path / "d" / "history" / "dt=2030-01-02").is_dir()


def test_the_java_command_prints_the_java_that_spark_uses(run: Run, tmp_path: Path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert run("pipeline", "java").out == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("PENSTOCK_PIPELINE_TARGETS", "mail wait soon 99", "is not a duration"),
        ("PENSTOCK_PIPELINE_COST_PER_GIB", "much", "a number such as 0.09"),
        ("PENSTOCK_PIPELINE_COST_PER_GIB", "-1", "a number such as 0.09"),
    ],
)
def test_an_invalid_setting_is_refused(key: str, value: str, expected: str):
    with pytest.raises(Exception, match=expected):
        load(env={key: value})


def test_a_report_of_what_was_computed_is_one_page(run: Run, driver: LakeDriver, tmp_path: Path):
    driver.archive(HISTORY, {}, {})
    run("pipeline", "run", "rollups", "--lake", driver.folder)

    made = run("pipeline", "report", tmp_path / "what-was.html", "--lake", driver.folder)

    assert (made.code, made.out.strip()) == (0, str(tmp_path / "what-was.html"))
    page = (tmp_path / "what-was.html").read_text()
    assert "mail" in page
    assert "<script" not in page


def test_a_stream_that_runs_once_adds_what_is_there(run: Run, driver: LakeDriver):
    driver.archive(HISTORY, {}, {})

    with stream._alone(driver.lake):
        refused = run("pipeline", "stream", "--once", "--lake", driver.folder)
    ran = run("pipeline", "stream", "--once", "--lake", driver.folder, "--json")

    assert refused.code == 1
    assert "penstock: another stream is using these tables: " in refused.err
    assert refused.err.endswith("(lake_busy)\n")
    assert ran.code == 0
    [batch] = ran.records
    assert batch["rows"] == 2
    assert batch["per_second"] > 0
    ended_at = parse_instant("at", batch["at"])
    assert batch["lag_ms"] >= ended_at - NOON
    of_days = driver.read("rollups").where("grain = 'day' AND dimension = 'queue'")
    assert [row.finished for row in of_days.collect()] == [2]


def test_a_damaged_file_is_one_line_with_its_name_and_a_code(run: Run, driver: LakeDriver):
    driver.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})
    [damaged] = (driver.folder / "history" / f"dt={DT}").glob("*.parquet")
    damaged.write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")

    ran = run("pipeline", "run", "quality", "--lake", driver.folder, "--json")

    assert ran.code == 1
    assert [(r["dt"], r["status"]) for r in ran.records] == [(DT, "refused"), (NEXT_DT, "done")]
    assert ran.err.splitlines() == [
        "penstock: quality: 2 days",
        f"penstock: {DT}: cannot read history/dt={DT}/{damaged.name}: it is damaged; "
        "replace the file and run again (load_refused)",
    ]


def test_a_second_run_names_the_one_that_is_at_work(run: Run, driver: LakeDriver):
    driver.archive(HISTORY, {})
    with lock_tables(driver.lake, waits=False):
        ran = run("pipeline", "run", "quality", "--lake", driver.folder)

    assert ran.code == 1
    [line] = ran.err.splitlines()
    assert line.startswith("penstock: another run is using these tables: ")
    assert f"(process {os.getpid()}), since " in line
    assert line.endswith("; use --wait to wait for it (lake_busy)")
    assert run("pipeline", "run", "quality", "--lake", driver.folder, "--wait").code == 0


@pytest.mark.parametrize("words", [(), ("--verbose",)])
def test_an_error_of_spark_is_one_line_and_its_details_are_shown_on_request(
    run: Run, tmp_path: Path, words: tuple[str, ...]
):
    ran = run("pipeline", "run", "--lake", "nowhere://lake", *words)

    assert ran.code == 1
    *details, line = ran.err.splitlines()
    hint = "" if words else "; --verbose shows the details"
    assert (
        line == f'penstock: Spark failed: No FileSystem for scheme "nowhere"{hint} (spark_failed)'
    )
    assert any("Traceback" in detail for detail in details) == bool(words)


def test_the_schemas_of_all_tables_are_shown_without_a_session(run):
    whole = run("pipeline", "schema", "--json").record
    [history] = run("pipeline", "schema", "history", "--json").records
    unknown = run("pipeline", "schema", "nothing")

    assert whole["lake"][0] == history
    assert {"name": "id", "type": "string"}.items() <= history["columns"][2].items()
    assert "wait_histogram" in run("pipeline", "schema", "rollups").out
    assert (unknown.code, unknown.err.endswith("(table_not_found)\n")) == (1, True)
