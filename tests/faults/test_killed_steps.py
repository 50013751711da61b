"""A process that is killed with signal 9 repeats no step that it has recorded."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.api.jobs import steps
from penstock.domain.message.lifecycle import State
from tests.faults.conftest import TIMEOUT_S
from tests.faults.figures import figure
from tests.faults.killed_steps import STEPS

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("migrated_url"))
    return f"sqlite:///{tmp_path / 'jobs.db'}"


def play(module: str, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.faults.{module}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S - 10,
    )
    assert done.returncode == 0, done.stderr


def test_ten_steps_killed_at_every_boundary_repeat_no_recorded_step(
    url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    play("killed_steps", url, str(log))

    lines = Counter(log.read_text().splitlines())
    names = [f"step {number}" for number in range(STEPS)]
    died_before = {name: lines.pop(f"died before {name}", 0) for name in names}
    assert dict(lines) == {name: 1 + died_before[name] for name in names}
    assert sum(died_before.values()) >= STEPS // 2
    with Penstock(url) as app:
        [job] = app.jobs.list(queue="farm", state=State.DONE)
        found = app.backend.channel.request(steps.OF_MESSAGE, id=job.id).steps
    assert [one.outcome for one in found] == names


def test_ten_steps_killed_at_any_line_of_our_code_repeat_no_recorded_step(
    url: str, tmp_path: Path
) -> None:
    log, kills = tmp_path / "log", figure(12, 1_000)
    play("steps_killed_at_lines", url, str(log), str(kills))

    recorded: set[str] = set()
    called: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        verb, name = line.split()
        if verb == "kept":
            recorded.add(name)
        else:
            assert name not in recorded
            called[name] += 1
    jobs = {name.partition(".")[0] for name in called}
    assert len(called) == STEPS * len(jobs)
    # At most one call for each death, besides the one that was recorded.
    assert called.total() <= len(called) + kills
    with Penstock(url) as app:
        assert app.jobs.count("farm").totals.done == len(jobs)
