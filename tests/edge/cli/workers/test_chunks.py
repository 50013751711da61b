"""Chunk handlers in worker processes and sandboxes."""

from __future__ import annotations

from penstock.domain.message.lifecycle import State
from tests.edge.cli.workers import application
from tests.edge.cli.workers.job_lookup import PATIENCE_S
from tests.support.waiting import eventually


def test_a_chunk_runs_in_one_sandbox_and_each_of_its_jobs_ends_by_itself(
    any_app, any_url, make_worker, tmp_path
):
    seen = str(tmp_path / "seen")
    texts = ("done", "cancelled", "retried")
    sent = application.write_together.enqueue_many(
        [application.write_together.args((seen, text)) for text in texts]
    )
    make_worker(any_url)

    def states() -> list[State]:
        return [any_app.jobs.get(one).state for one in sent]

    expected = [State.DONE, State.CANCELLED, State.WAITING]
    eventually(lambda: states() == expected, within_s=PATIENCE_S)
    assert (tmp_path / "seen").read_text() == "done cancelled retried\n"
    assert any_app.jobs.get(sent[2]).progress == {"fraction": 0.5}


def test_after_a_crash_each_job_of_the_chunk_runs_alone(app, url, make_worker, tmp_path):
    seen = str(tmp_path / "seen")
    job = application.crash_together
    good, bad, other = job.enqueue_many([job.args((seen, text)) for text in ("a", "bad", "b")])
    make_worker(url)

    for one in (good, other):
        assert app.jobs.wait(one, timeout=f"{PATIENCE_S}s").state is State.DONE
    dead = app.jobs.wait(bad, timeout=f"{PATIENCE_S}s")
    assert (dead.reason, dead.crashes) == ("quarantined", 3)
    lines = (tmp_path / "seen").read_text().splitlines()
    assert lines[0] == "a bad b"
    assert sorted(lines[1:]) == ["a", "b", "bad", "bad"]
