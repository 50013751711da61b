"""Which days a run computes, which it skips, and what it records."""

from __future__ import annotations

import msgspec
import pytest

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.layout import HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline import registry
from penstock.pipeline.files.listing import DayFiles
from penstock.pipeline.job import PipelineJob
from penstock.pipeline.jobs.lifecycle import JOB, LIFECYCLE
from penstock.pipeline.runner import DaySpan
from penstock.pipeline.runs import fingerprints, window
from tests.pipeline.rows import DT, NEXT_DT, at, pairs

pytestmark = pytest.mark.usefixtures("planned_once")


def test_a_job_computes_every_day_once(driver):
    driver.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})

    first = driver.ran("lifecycle")
    second = driver.ran("lifecycle")

    assert set(first) >= {("lifecycle", DT), ("lifecycle", NEXT_DT)}
    assert second == []


def test_late_rows_change_only_their_own_day(computed_lake):
    computed_lake.archive(HISTORY, {"id": "late"})
    ran = computed_lake.ran("lifecycle")

    assert {dt for _, dt in ran} == {DT}
    assert pairs(computed_lake.read("lifecycle"), "dt", "id") == [
        (DT, "late"),
        (DT, "m-1"),
        (NEXT_DT, "m-1"),
    ]


def test_running_a_day_again_replaces_it_and_adds_nothing(computed_lake):
    computed_lake.run("lifecycle", is_forced=True)

    assert computed_lake.read("lifecycle").count() == 2


def test_a_run_that_was_killed_before_it_was_recorded_is_repeated(driver):
    driver.archive(HISTORY, {}, {})
    driver.lake.replace(LIFECYCLE, driver.read("lifecycle"), [DT])
    tables = {"history": driver.read("history")}
    driver.lake.replace(LIFECYCLE, JOB.outputs[0].transform(tables, PipelineSettings()), [DT])

    assert ("lifecycle", DT) in driver.ran("lifecycle")
    assert driver.read("lifecycle").count() == 2


def test_a_day_without_rows_is_emptied(computed_lake):
    nothing = computed_lake.read("lifecycle").limit(0)
    computed_lake.lake.replace(LIFECYCLE, nothing, [DT])

    assert pairs(computed_lake.read("lifecycle"), "dt") == [(NEXT_DT,)]


def test_only_the_requested_days_are_computed_both_ends_included(driver):
    for day in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"):
        driver.archive(HISTORY, {"finished_at": at("09:00:00", day)})

    ran = driver.ran("lifecycle", span=DaySpan("2026-01-02", "2026-01-03"))

    assert {dt for _, dt in ran} == {"2026-01-02", "2026-01-03"}


def test_a_run_leaves_a_record_with_its_times_and_the_rows_of_each_day(driver):
    driver.archive(HISTORY, {}, {}, {"finished_at": at("09:00:00", NEXT_DT)})

    driver.run("lifecycle")

    [first, second] = [run for run in driver.runs() if run.job == "lifecycle"]
    assert (first.dt, first.status, first.rows_in, first.rows_out) == (
        DT,
        "done",
        {"history": 2},
        {"lifecycle": 2},
    )
    assert (second.dt, second.rows_out) == (NEXT_DT, {"lifecycle": 1})
    assert first.started_at < first.ended_at


def test_a_file_that_the_archiver_is_still_writing_is_ignored(driver):
    driver.archive(HISTORY, {})
    [file] = (driver.folder / "history" / f"dt={DT}").iterdir()
    file.with_name(f".tmp-{file.name}").write_bytes(file.read_bytes())

    driver.run("lifecycle")

    assert driver.read("lifecycle").count() == 1


def test_an_empty_lake_gives_nothing_to_do(driver):
    assert driver.run() == []


def test_a_lake_can_be_moved_and_nothing_is_computed_again(computed_lake, tmp_path):
    moved = computed_lake.folder.rename(tmp_path / "elsewhere")

    assert type(computed_lake)(computed_lake.spark, moved).ran("lifecycle") == []


def test_the_jobs_that_a_job_needs_run_before_it():
    names = [job.name for job in registry.jobs(["lifecycle"])]

    assert names[-1] == "lifecycle"


def test_an_unknown_job_is_refused_with_a_suggestion():
    with pytest.raises(InvalidRequest, match="did you mean 'lifecycle'"):
        registry.jobs(["livecycle"])


FILES = {"history": {DT: DayFiles("a"), NEXT_DT: DayFiles("b")}}


class TestFingerprints:
    def of(
        self, job: PipelineJob, settings: PipelineSettings | None = None, files: dict | None = None
    ) -> dict:
        return fingerprints(job, files or FILES, settings or PipelineSettings())

    def test_one_more_file_changes_its_day_only(self):
        more = {"history": {**FILES["history"], NEXT_DT: DayFiles("c")}}

        before, after = self.of(JOB), self.of(JOB, files=more)

        assert before[DT] == after[DT]
        assert before[NEXT_DT] != after[NEXT_DT]

    def test_a_job_that_looks_back_is_changed_by_the_day_before(self):
        job = msgspec.structs.replace(JOB, lookback_days=1)
        more = {"history": {**FILES["history"], DT: DayFiles("c")}}

        assert self.of(job)[NEXT_DT] != self.of(job, files=more)[NEXT_DT]
        assert window([NEXT_DT], job, "history") == [DT, NEXT_DT]

    def test_a_setting_that_the_job_depends_on_and_a_new_version_change_all_days(self):
        dependent = msgspec.structs.replace(JOB, settings=("max_bad_per_million",))
        newer = msgspec.structs.replace(JOB, version=2)
        other = PipelineSettings(max_bad_per_million=5)

        assert self.of(dependent)[DT] != self.of(dependent, other)[DT]
        assert self.of(JOB)[DT] != self.of(newer)[DT]
        assert self.of(JOB)[DT] == self.of(JOB, other)[DT]
