"""`penstock pipeline run --summary`: what orchestrators learn about a run, however it ends."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.edge.cli.pipeline.run_summary import write_summary
from penstock.edge.cli.pipeline.spark_command import lock_tables
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.runs import JobRun, RunStatus
from penstock.pipeline.schemas import ComputedTable
from penstock.pipeline.summary import RunOutcome, jobs_of, summary_of
from tests.edge.cli.conftest import Run, _no_settings_from_outside, run
from tests.pipeline import process
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, NOON, at
from tests.pipeline.test_commands import same_session

__all__ = ["_no_settings_from_outside", "run", "same_session"]


def a_run(
    job: str, dt: str, status: RunStatus = RunStatus.DONE, *, ended_at: int = 3_000
) -> JobRun:
    return JobRun(
        job=job,
        dt=dt,
        status=status,
        started_at=1_000,
        ended_at=ended_at,
        inputs="x",
        rows_in={"history": 2, "attempts": 1},
        rows_out={job: 2},
    )


def test_days_are_computed_refused_or_skipped():
    runs = [a_run("quality", DT), a_run("quality", NEXT_DT, RunStatus.REFUSED)]
    last = {("quality", "2025-12-31"): a_run("quality", "2025-12-31")}

    [quality, slo] = jobs_of(["quality", "slo"], runs, last)

    assert [(day.dt, day.status) for day in quality.days] == [
        ("2025-12-31", "skipped"),
        (DT, "computed"),
        (NEXT_DT, "refused"),
    ]
    assert (quality.computed, quality.refused, quality.skipped, quality.seconds) == (1, 1, 1, 2.0)
    assert (quality.days[1].rows_in, quality.days[1].rows_out) == (3, 2)
    assert (slo.computed, slo.seconds, slo.days) == (0, 0, [])


def test_a_day_stays_refused_until_it_is_computed():
    [quality] = jobs_of(["quality"], [], {("quality", DT): a_run("quality", DT, RunStatus.REFUSED)})

    assert (quality.refused, quality.skipped, quality.days[0].status) == (1, 0, "refused")
    summary = summary_of([quality], started_at=0, ended_at=0)
    assert (summary.status, summary.code) == (RunOutcome.REFUSED, "load_refused")


def test_the_outcome_of_a_run_is_that_of_its_days_unless_it_ended_early():
    done = jobs_of(["slo"], [a_run("slo", DT)], {})
    refused = jobs_of(["slo"], [a_run("slo", DT, RunStatus.REFUSED)], {})

    def outcome(jobs, code=None):
        found = summary_of(jobs, started_at=0, ended_at=1_500, code=code)
        return found.status, found.code, found.seconds

    assert outcome(done) == (RunOutcome.DONE, None, 1.5)
    assert outcome(refused) == (RunOutcome.REFUSED, "load_refused", 1.5)
    assert outcome(refused, "lake_busy") == (RunOutcome.FAILED, "lake_busy", 1.5)


def test_a_summary_is_written_whether_days_are_refused_or_the_lake_is_busy(
    run: Run, driver: LakeDriver, tmp_path: Path
):
    driver.archive(HISTORY, {}, {"sent_at": NOON + 10**9, "finished_at": at("09:00:00", NEXT_DT)})
    words = (
        "pipeline",
        "run",
        "quality",
        "--lake",
        driver.folder,
        "--summary",
        tmp_path / "s.json",
    )

    def summary():
        return json.loads((tmp_path / "s.json").read_text())

    assert run(*words).code == 1
    first = summary()
    assert (first["status"], first["code"]) == ("refused", "load_refused")
    [quality] = first["jobs"]
    assert [(d["dt"], d["status"]) for d in quality["days"]] == [
        (DT, "computed"),
        (NEXT_DT, "refused"),
    ]
    assert "negative_wait" in quality["days"][1]["note"]

    retried = run(*words)
    assert (retried.code, retried.err.count("load_refused"), retried.out.count(NEXT_DT)) == (
        1,
        1,
        1,
    )
    retry = summary()
    assert (retry["status"], retry["code"]) == ("refused", "load_refused")
    assert [day["status"] for day in retry["jobs"][0]["days"]] == ["skipped", "refused"]
    assert retry["jobs"][0]["days"][1] == quality["days"][1]

    assert run(*words, "--to", DT).code == 0
    again = summary()
    assert (again["status"], again["jobs"][0]["skipped"]) == ("done", 1)

    with lock_tables(driver.lake, waits=False):
        assert run(*words).code == 1
    busy = summary()
    assert (busy["status"], busy["code"], busy["jobs"]) == ("failed", "lake_busy", [])
    assert "another run is using these tables" in busy["message"]


def test_a_refused_day_that_has_left_the_lake_is_refused_no_longer(run: Run, driver: LakeDriver):
    driver.archive(HISTORY, {}, {"sent_at": NOON + 10**9, "finished_at": at("09:00:00", NEXT_DT)})
    words = ("pipeline", "run", "quality", "--lake", driver.folder)
    assert run(*words).code == 1

    shutil.rmtree(driver.folder / "history" / f"dt={NEXT_DT}")

    assert run(*words).code == 0


def test_a_file_that_cannot_be_written_is_reported_before_anything_runs(
    run: Run, driver: LakeDriver, tmp_path: Path, same_session: list[object]
):
    driver.archive(HISTORY, {})
    words = ("pipeline", "run", "quality", "--lake", driver.folder, "--summary")

    missing = run(*words, tmp_path / "none" / "s.json")
    folder = run(*words, tmp_path)

    assert missing.code == folder.code == 1
    assert "none/s.json: No such file or directory (invalid_request)" in missing.err
    assert f"cannot write the summary {tmp_path}: Is a directory" in folder.err
    assert same_session == []


def test_the_error_of_a_run_is_not_replaced_by_that_of_its_summary(run: Run, tmp_path: Path):
    folder = tmp_path / "gone"
    folder.mkdir()

    with pytest.raises(KeyError), write_summary(str(folder / "s.json")):  # noqa: PT012
        folder.rmdir()
        raise KeyError("x")


def test_jobs_that_finished_are_in_the_summary_of_a_run_that_failed(
    run: Run, driver: LakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    driver.archive(HISTORY, {})
    replace = SparkLake.replace

    def fail_later(lake: SparkLake, table: ComputedTable, *more: Any) -> None:
        if table.name == "rollups":
            raise RuntimeError("no more\nat all")
        replace(lake, table, *more)

    monkeypatch.setattr(SparkLake, "replace", fail_later)
    ran = run(
        "pipeline", "run", "rollups", "--lake", driver.folder, "--summary", tmp_path / "s.json"
    )

    assert ran.code == 1
    assert ran.err.endswith(
        "penstock: RuntimeError: no more; --verbose shows the details (internal)\n"
    )
    summary = json.loads((tmp_path / "s.json").read_text())
    assert (summary["status"], summary["code"]) == ("failed", "internal")
    assert [(job["job"], job["computed"]) for job in summary["jobs"]] == [
        ("quality", 1),
        ("lifecycle", 1),
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("rollup",), "did you mean 'rollups'"),
        (("--set", "pipeline.targets=mail wait soon 99"), "is not a duration"),
    ],
)
def test_a_run_that_cannot_begin_has_a_summary(
    run: Run, tmp_path: Path, words: tuple[str, ...], text: str
):
    ran = run("pipeline", "run", *words, "--lake", tmp_path, "--summary", tmp_path / "s.json")

    summary = json.loads((tmp_path / "s.json").read_text())
    assert (ran.code, summary["status"], summary["jobs"]) == (1, "failed", [])
    assert text in summary["message"]
    assert ran.err == f"penstock: {summary['message']} ({summary['code']})\n"


def test_without_spark_the_summary_says_so(tmp_path: Path):
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'pyspark' else find(name, *more)\n"
        "from penstock.edge.cli.main import main\n"
        f"sys.exit(main(['pipeline', 'run', '--summary', {str(tmp_path / 's.json')!r}]))"
    )
    ran = process.run([sys.executable, "-c", program])

    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert (summary["status"], summary["code"]) == ("failed", "invalid_request")
    assert "Spark is not installed" in summary["message"]
