"""Worker processes are started for work and stopped without it."""

from __future__ import annotations

from pathlib import Path

from penstock.domain.message.history import HistoryFilter
from tests.autoscaling import application
from tests.support.waiting import eventually

PATIENCE_S = 120.0
FLEETS = """
[profiles.default]
samples_needed = {samples}
backlog_goal_s = 1

[fleets.mailers]
queue = "mail"
max = 3
interval_ms = "1s"
steady_ms = "0s"

[fleets.mailers.replicas]
kind = "processes"
app = "tests.autoscaling.application:app"
slots = 1
arguments = ["--beat", "200ms", "--prefetch", "0"]
drain_ms = "{drain}"
"""


def test_workers_come_with_the_backlog_and_go_when_it_is_done(app, autoscale, tmp_path):
    seen = tmp_path / "seen"
    for n in range(200):
        application.brief.enqueue(str(seen), str(n))

    autoscaler = autoscale(FLEETS.format(samples=1, drain="60s"))
    eventually(lambda: len(autoscaler.pids("mailers")) == 3, within_s=PATIENCE_S)
    eventually(lambda: autoscaler.is_at_rest("mailers"), within_s=PATIENCE_S)

    assert sorted(map(int, seen.read_text().split())) == list(range(200))
    made = autoscaler.decisions("mailers")
    assert made[0]["reason"] == "first_message"
    assert made[0]["wanted"] == 1
    assert max(one["wanted"] for one in made) == 3


def test_a_busy_worker_that_is_stopped_finishes_its_job(app, autoscale, tmp_path):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    job = application.wait_for.enqueue(str(seen), str(gate))
    autoscaler = autoscale(FLEETS.format(samples=3, drain="10m"))

    # Nothing waits and nothing has a rate: as in autoscale-workload-rabbit, the fleet goes to zero.
    eventually(
        lambda: [one["wanted"] for one in autoscaler.decisions("mailers")][-1:] == [0],
        within_s=PATIENCE_S,
    )
    assert len(autoscaler.pids("mailers")) == 1
    assert len(_lines(seen)) == 1
    gate.touch()
    eventually(lambda: autoscaler.is_at_rest("mailers"), within_s=PATIENCE_S)

    assert _lines(seen)[1:] == ["end"]
    [ending] = autoscaler.broker.history.history(HistoryFilter(id=job.id)).result()
    assert (ending.attempts, str(ending.outcome)) == (1, "done")


def test_a_job_that_falls_due_brings_a_worker_to_a_fleet_that_has_none(app, autoscale, tmp_path):
    seen = tmp_path / "seen"
    application.brief.enqueue_in("3s", str(seen), "late")

    autoscaler = autoscale(FLEETS.format(samples=3, drain="60s"))
    eventually(lambda: seen.exists(), within_s=PATIENCE_S)
    eventually(lambda: autoscaler.is_at_rest("mailers"), within_s=PATIENCE_S)

    assert [one["wanted"] for one in autoscaler.decisions("mailers")] == [1, 0]


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
