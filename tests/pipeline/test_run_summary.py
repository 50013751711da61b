"""`penstock pipeline run --summary`: what orchestrators learn about a run, however it ends."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.domain.lake.layout import HISTORY
from penstock.edge.cli.pipeline.shared import locked
from penstock.pipeline.runs import JobRun, RunStatus
from penstock.pipeline.summary import RunOutcome, jobs_of, summary_of
from tests.edge.cli.conftest import Run, _no_settings_from_outside, run
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
    run: Run, bench: LakeDriver, tmp_path: Path
):
    bench.archive(HISTORY, {}, {"sent_at": NOON + 10**9, "finished_at": at("09:00:00", NEXT_DT)})
    words = ("pipeline", "run", "quality", "--lake", bench.folder, "--summary", tmp_path / "s.json")

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

    assert run(*words, "--to", DT).code == 0
    again = summary()
    assert (again["status"], again["jobs"][0]["skipped"]) == ("done", 1)

    with locked(bench.lake, waits=False):
        assert run(*words).code == 1
    busy = summary()
    assert (busy["status"], busy["code"], busy["jobs"]) == ("failed", "lake_busy", [])
    assert "another run is using these tables" in busy["message"]
