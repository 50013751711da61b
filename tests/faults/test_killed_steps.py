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
from tests.faults.killed_steps import STEPS

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("migrated_url"))
    return f"sqlite:///{tmp_path / 'jobs.db'}"


def test_ten_steps_killed_at_every_boundary_repeat_no_recorded_step(
    url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed_steps", url, str(log)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr

    lines = Counter(log.read_text().splitlines())
    names = [f"step {number}" for number in range(STEPS)]
    died_before = {name: lines.pop(f"died before {name}", 0) for name in names}
    assert dict(lines) == {name: 1 + died_before[name] for name in names}
    assert sum(died_before.values()) >= STEPS // 2
    with Penstock(url) as app:
        [job] = app.jobs.list(queue="farm", state=State.DONE)
        found = app.backend.channel.request(steps.OF_MESSAGE, id=job.id).steps
    assert [one.outcome for one in found] == names
