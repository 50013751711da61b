"""Time limits that really stop the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.message.history import Ending
from tests.edge.cli.workers import application
from tests.edge.cli.workers.job_lookup import PATIENCE_S, message, soon_dead, view
from tests.support.waiting import eventually


@pytest.mark.parametrize("kind", ["never_yields", "waits_for_ever", "blocks_the_loop"])
def test_a_job_is_stopped_at_its_time_limit_marked_and_not_retried(
    app, url, make_worker, tmp_path, kind
):
    seen = tmp_path / "seen"
    sent = getattr(application, kind).enqueue(str(seen))
    make_worker(url, "--slots", "2")

    dead = soon_dead(app, sent.id)
    after = application.write.enqueue(str(tmp_path / "after"), "still working")
    eventually(lambda: message(app, after.id) is None, within_s=PATIENCE_S)

    assert (dead.reason, dead.attempts, dead.crashes) == ("timed_out", 1, 0)
    assert seen.read_text().count("begin") == 1


def test_an_async_job_may_clean_up_when_its_time_is_over(app, url, make_worker, tmp_path):
    seen = tmp_path / "seen"
    application.waits_for_ever.enqueue(str(seen))
    make_worker(url)

    eventually(lambda: seen.exists() and "cleaned up" in seen.read_text(), within_s=PATIENCE_S)


def test_a_job_in_a_sandbox_may_clean_up_when_an_operator_cancels_it(
    app, url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    sent = application.runs_for_ever.enqueue(str(seen))
    make_worker(url, "--slots", "1")
    eventually(lambda: seen.exists() and "begin" in seen.read_text(), within_s=PATIENCE_S)
    sandbox = int(seen.read_text().split()[1])

    app.jobs.cancel(sent, reason="no")

    eventually(lambda: "cleaned up" in seen.read_text(), within_s=PATIENCE_S)
    assert Path(f"/proc/{sandbox}").exists()  # it is kept for the next job
    after = application.write.enqueue(str(tmp_path / "after"), "the slot is free")
    eventually(lambda: message(app, after.id) is None, within_s=PATIENCE_S)
    ended = view(app, sent.id).message
    assert isinstance(ended, Ending)
    assert (ended.outcome, ended.reason, ended.crashes) == ("cancelled", "no", 0)


def test_the_process_of_a_job_that_blocks_the_loop_is_killed_and_its_slot_is_free_again(
    app, url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    sent = application.blocks_the_loop.enqueue(str(seen))
    worker = make_worker(url, "--slots", "1")
    soon_dead(app, sent.id)

    after = application.write_async.enqueue(str(tmp_path / "after"), "the loop is free")
    eventually(lambda: message(app, after.id) is None, within_s=PATIENCE_S)

    assert f"did not stop blocks_the_loop {sent.id} in time" in worker.log.read_text()
