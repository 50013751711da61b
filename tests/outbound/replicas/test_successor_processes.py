"""Processes across autoscalers: the next one finds them, and stops or keeps them at its exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.domain.errors import ReplicasUnavailable
from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas.launch import send, start_time
from tests.clocks import NOON
from tests.outbound.replicas.conftest import PATIENCE_S, kill, pids, read_ledger, soon_gone
from tests.support.waiting import eventually


def test_started_processes_are_found_by_the_next_autoscaler(make, home):
    make().scale_to(2, now=NOON)
    before = pids(home)

    after = make()
    assert after.count(now=NOON) == Replicas(running=2, requested=2)
    after.scale_to(1, now=NOON)

    assert len(pids(home)) == 1
    assert pids(home)[0] in before


def test_processes_that_ended_between_autoscalers_are_not_counted(make, home):
    make().scale_to(2, now=NOON)
    kill(pids(home)[0])

    after = make()
    after.maintain(now=NOON)

    assert after.count(now=NOON) == Replicas(running=1, requested=1)


def test_an_unrelated_process_that_reuses_a_pid_is_left_alone(make, home):
    fleet = make()
    fleet.scale_to(1, now=NOON)
    [mine] = read_ledger(home).started
    file = home / "mail.json"
    file.write_text(file.read_text().replace(mine.start_time, f"{mine.start_time}0"))
    try:
        assert fleet.count(now=NOON) == Replicas(running=0, requested=0)
        fleet.scale_to(0, now=NOON)

        assert start_time(mine.pid) == mine.start_time
    finally:
        os.kill(mine.pid, signal.SIGKILL)


def test_a_signal_reaches_only_the_process_with_the_right_start_time():
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert not send(child.pid, "another time", signal.SIGKILL)
        assert child.poll() is None
        assert send(child.pid, start_time(child.pid) or "", signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    finally:
        child.kill()
    assert start_time(child.pid) is None


def test_a_corrupt_ledger_is_an_error_and_nothing_is_done(make, home):
    fleet = make()
    fleet.scale_to(1, now=NOON)
    text = (home / "mail.json").read_text()
    (home / "mail.json").write_text("{")

    with pytest.raises(ReplicasUnavailable, match=r"mail\.json cannot be read"):
        fleet.scale_to(0, now=NOON)

    (home / "mail.json").write_text(text)
    assert len(pids(home)) == 1


# ---- the end


def test_the_processes_end_with_the_autoscaler(make, home, clock):
    fleet = make()
    fleet.scale_to(2, now=clock.now())
    started = read_ledger(home).started

    fleet.close()

    assert pids(home) == []
    for one in started:
        soon_gone(one.pid, one.start_time)
    eventually(lambda: read_ledger(home).started == [], within_s=PATIENCE_S)


def test_processes_that_are_to_be_kept_outlive_the_autoscaler(make, home, clock):
    fleet = make(keep=True)
    fleet.scale_to(2, now=clock.now())

    fleet.close()

    assert len(pids(home)) == 2


def test_an_autoscaler_that_has_only_counted_ends_no_process(make, home, clock):
    make().scale_to(1, now=clock.now())

    onlooker = make()
    onlooker.count(now=clock.now())
    onlooker.close()

    assert len(pids(home)) == 1


def test_an_autoscaler_that_ends_leaves_the_processes_of_another_live_one(
    make, home, start_elsewhere
):
    [theirs] = start_elsewhere(is_to_live=True)
    mine = make()
    mine.scale_to(2, now=NOON)

    mine.close()

    assert pids(home) == [theirs]


def test_an_autoscaler_that_ends_also_ends_the_processes_of_a_dead_one(make, home, start_elsewhere):
    start_elsewhere(is_to_live=False)
    mine = make()
    mine.maintain(now=NOON)

    mine.close()

    assert pids(home) == []


def test_an_end_that_cannot_be_recorded_is_logged(make, home, caplog):
    fleet = make()
    fleet.scale_to(1, now=NOON)
    kill(pids(home)[0])
    (home / "mail.new").mkdir()  # where the ledger is written first

    fleet._wait_for_ends(NOON)

    assert "fleet mail: cannot record which processes have ended" in caplog.text


_ELSEWHERE = """
import sys
from pathlib import Path
from penstock.domain.scaling.fleet import Processes
from penstock.outbound.clock import SystemClock
from penstock.outbound.dice import SystemDice
from penstock.outbound.replicas.launch import Launch
from penstock.outbound.replicas.processes import ProcessReplicas
spec = Processes(run=("sleep", "600"))
launch = Launch("mail", spec, queues=("mail",), store_url="")
fleet = ProcessReplicas("mail", spec, launch, folder=Path(sys.argv[1]), registry=None,
                        clock=SystemClock(), dice=SystemDice())
fleet.scale_to(1, now=0)
print("started", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start_elsewhere(home: Path):
    """Another autoscaler, in a process of its own, that starts one process."""
    found: list[subprocess.Popen[str]] = []

    def start(*, is_to_live: bool) -> list[int]:
        before = pids(home)
        other = subprocess.Popen(
            [sys.executable, "-c", _ELSEWHERE, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        found.append(other)
        assert other.stdout is not None
        assert other.stdout.readline() == "started\n"
        if not is_to_live:
            other.kill()
            other.wait()
        return [pid for pid in pids(home) if pid not in before]

    yield start
    for one in found:
        one.kill()
        one.communicate()
