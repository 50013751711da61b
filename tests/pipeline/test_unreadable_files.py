"""A file that cannot be read refuses its own day, by name; the other days are computed."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.domain.lake.layout import HISTORY, folder
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.registry import jobs
from penstock.pipeline.runner import DaySpan
from penstock.pipeline.spark.errors import SPARK_ERRORS, explain
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at, day_after, pairs

pytestmark = pytest.mark.usefixtures("planned_once")
DAMAGED, RETYPED, EMPTY = NEXT_DT, day_after(DT, 2), day_after(DT, 3)
LAST = day_after(DT, 4)


def test_a_day_with_an_unreadable_file_is_refused_until_the_file_was_replaced(driver):
    for day in (DT, DAMAGED, RETYPED, EMPTY, LAST):
        driver.archive(HISTORY, {"finished_at": at("12:00:00", day), "route": "/shop"})
    contents = {day: _file(driver, day).read_bytes() for day in (DAMAGED, RETYPED, EMPTY)}
    _file(driver, DAMAGED).write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")
    _retype(_file(driver, RETYPED), "size")
    _file(driver, EMPTY).write_bytes(b"")

    first = driver.run("lifecycle", "breaker_tuning")

    refused = {run.dt: run for run in first if run.status == "refused"}
    assert {dt: run.job for dt, run in refused.items()} == dict.fromkeys(contents, "quality")
    assert all(run.is_unreadable for run in refused.values())
    assert {dt: run.note for dt, run in refused.items()} == {
        DAMAGED: f"cannot read {_name(driver, DAMAGED)}: it is damaged",
        RETYPED: f"cannot read {_name(driver, RETYPED)}: column size has another type",
        EMPTY: f"cannot read {_name(driver, EMPTY)}: it is empty",
    }
    assert pairs(driver.read("lifecycle"), "dt") == [(DT,), (LAST,)]
    assert {dt for job, dt in _done(first) if job == "breaker_tuning"} == {DT, LAST}

    for day, content in contents.items():
        _file(driver, day).write_bytes(content)
    second = driver.run("lifecycle", "breaker_tuning")

    assert {dt for job, dt in _done(second) if job == "lifecycle"} == set(contents)
    assert {dt for job, dt in _done(second) if job == "breaker_tuning"} == {*contents, LAST}
    assert {run.status for run in second} == {"done"}
    assert driver.read("lifecycle").count() == 5


def test_a_damaged_file_of_a_table_stops_the_jobs_that_read_it_until_it_is_deleted(computed_lake):
    driver = computed_lake
    [damaged] = (driver.folder / "derived" / "lifecycle" / f"dt={DT}").glob("*.parquet")
    damage(damaged)

    first = driver.run("slo")
    damaged.unlink()
    second = driver.run("slo")

    [refused] = [run for run in first if run.status == "refused"]
    assert (refused.job, refused.dt) == ("slo", DT)
    assert f"lifecycle/dt={DT}/{damaged.name}" in refused.note
    assert ("slo", NEXT_DT) in _done(first)
    assert {("slo", DT), ("lifecycle", DT)} <= set(_done(second))


def test_files_of_a_table_that_were_changed_or_deleted_are_computed_again(computed_lake):
    driver = computed_lake
    driver.run("slo")
    derived = driver.folder / "derived"
    [cut] = (derived / "lifecycle" / f"dt={DT}").glob("*.parquet")
    cut.write_bytes(cut.read_bytes()[:-9])
    shutil.rmtree(derived / "slo" / f"dt={NEXT_DT}")

    assert driver.runner().stale(jobs(["slo"]), DaySpan()) == {
        "quality": [],
        "lifecycle": [DT],
        "slo": [DT, NEXT_DT],
    }
    assert driver.ran("slo") == [("lifecycle", DT), ("slo", DT), ("slo", NEXT_DT)]
    assert {day for (day,) in pairs(driver.read("slo"), "dt")} == {DT, NEXT_DT}
    assert driver.ran("slo") == []


def test_a_damaged_file_of_the_log_of_runs_is_named_and_can_be_deleted(computed_lake):
    driver = computed_lake
    for file in (driver.folder / "derived" / "runs").glob("*.parquet"):
        file.write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")

    with pytest.raises(SPARK_ERRORS) as failed:
        driver.run("lifecycle")

    found = explain(failed.value)
    assert found.code == "unreadable_file"
    assert re.search(
        r"/derived/runs/part-\S+\.parquet cannot be read: it is damaged; delete it", found.text
    )
    for file in (driver.folder / "derived" / "runs").glob("*.parquet"):
        file.unlink()
    again = [(job, day) for job in ("quality", "lifecycle") for day in (DT, NEXT_DT)]
    assert driver.ran("lifecycle") == again


def test_a_damaged_file_of_a_table_does_not_stop_the_jobs_that_do_not_read_it(computed_lake):
    driver = computed_lake
    driver.run("rollups")
    [damaged, *_] = (driver.folder / "derived" / "rollups" / f"dt={DT}").glob("*.parquet")
    damage(damaged)

    found = driver.run("capacity", "outage_cost", "breaker_tuning")

    assert [(r.job, r.dt) for r in found if r.status == "refused"] == [("capacity", DT)]
    assert {("outage_cost", DT), ("breaker_tuning", DT)} <= set(_done(found))


def test_a_damaged_file_of_a_job_is_replaced_when_its_day_is_computed_again(driver):
    driver.archive(HISTORY, {"sent_at": at("09:00:00")})
    wanted = PipelineSettings(targets="* wait 1s 99")
    driver.run("slo_budget", settings=wanted)
    expected = pairs(driver.read("slo"), "bad", "messages")
    for content in (b"PAR1" + b"?" * 500 + b"PAR1", b""):
        [file] = (driver.folder / "derived" / "slo" / f"dt={DT}").glob("*.parquet")
        file.write_bytes(content)

        assert driver.run("slo", settings=wanted, is_forced=True)[-1].status == "done"
        assert pairs(driver.read("slo"), "bad", "messages") == expected


def test_a_folder_that_is_not_a_day_is_ignored(driver):
    driver.archive(HISTORY, {})
    wrong = driver.folder / folder(HISTORY, "2026-02-30") / _file(driver, DT).name
    wrong.parent.mkdir()
    wrong.write_bytes(_file(driver, DT).read_bytes())

    assert driver.ran("quality") == [("quality", DT)]


def _file(driver: LakeDriver, day: str) -> Path:
    [found] = (driver.folder / folder(HISTORY, day)).glob("*.parquet")
    return found


def _name(driver: LakeDriver, day: str) -> str:
    return str(_file(driver, day).relative_to(driver.folder))


def _retype(path: Path, column: str) -> None:
    table = pq.ParquetFile(path).read()
    place = table.schema.get_field_index(column)
    values = table.column(column).cast(pa.string())
    pq.write_table(table.set_column(place, column, values), path)


def _done(runs) -> list[tuple[str, str]]:
    return [(run.job, run.dt) for run in runs if run.status == "done"]


def damage(file: Path) -> None:
    """As a defect of the disk does: size and time stay."""
    sound = file.stat()
    file.write_bytes(b"PAR1".ljust(sound.st_size - 4, b"?") + b"PAR1")
    os.utime(file, ns=(sound.st_atime_ns, sound.st_mtime_ns))
