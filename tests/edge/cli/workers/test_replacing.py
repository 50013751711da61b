"""Processes of `penstock worker` that have run enough are replaced."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.edge.cli.workers import memory_application
from tests.edge.cli.workers.job_lookup import PATIENCE_S

APP = "tests.edge.cli.workers.memory_application:app"


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path / 'plant.db'}"
    memory_application.app.use(url)
    yield url
    memory_application.app.close()


def test_a_process_and_a_sandbox_are_replaced_after_the_set_number_of_jobs(
    url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    for job in (memory_application.work, memory_application.work_apart):
        job.enqueue_many([{"file": str(seen)}] * 5)

    worker = make_worker(url, "--burst", "--max-jobs", "3", "--slots", "1", app=APP)

    assert worker.wait(PATIENCE_S) == 0
    runs = _runs(seen)
    assert sorted(runs["work"].values()) == [2, 3]
    assert sum(runs["apart"].values()) == 5
    assert max(runs["apart"].values()) <= 3
    log = worker.log.read_text()
    assert log.count("replacing this process: jobs finished: 3") == 1
    assert "exited:" not in log


def test_a_process_and_a_sandbox_are_replaced_when_they_have_too_much_memory(
    url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    for job in (memory_application.work, memory_application.work_apart):
        job.enqueue(str(seen), keep_mib=400)
        job.enqueue(str(seen))

    worker = make_worker(
        url, "--burst", "--max-memory", "350MiB", "--slots", "1", "--prefetch", "0", app=APP
    )

    assert worker.wait(PATIENCE_S) == 0
    runs = _runs(seen)
    assert [sorted(runs[name].values()) for name in ("work", "apart")] == [[1, 1], [1, 1]]
    log = worker.log.read_text()
    assert "replacing this process: its resident memory is" in log
    assert "replacing a sandbox: its resident memory is" in log
    assert "exited:" not in log


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--max-jobs", "0"), "0 is not between 1 and"),
        (("--max-memory", "5MiB"), "5MiB is less than 16MiB"),
        (("--max-memory", "lots"), "'lots' is not a size such as 64KiB"),
        (("--server", "http://127.0.0.1:1"), "--server and --store exclude each other"),
    ],
)
def test_invalid_flags_are_rejected(url, make_worker, flags, text):
    worker = make_worker(url, *flags, app=APP)

    assert worker.wait(PATIENCE_S) == 2
    assert text in worker.log.read_text()


def _runs(seen) -> dict[str, Counter[str]]:
    """By job, how many ran in each process."""
    runs: dict[str, Counter[str]] = {"work": Counter(), "apart": Counter()}
    for line in seen.read_text().splitlines():
        name, pid = line.split()
        runs[name][pid] += 1
    return runs
