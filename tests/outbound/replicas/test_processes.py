"""Processes of this machine: started, counted, ended, and found again after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.domain.errors import ReplicasUnavailable
from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas.process_table import birth, send
from penstock.outbound.replicas.processes import ProcessReplicas
from tests.clocks import NOON
from tests.outbound.replicas.conftest import PATIENCE_S, kill, pids, read_ledger, soon_gone
from tests.support.waiting import eventually

DEAF = ("sh", "-c", "trap '' TERM; while :; do touch $READY; sleep 0.05; done")
CRASHES = ("sh", "-c", "exit 3")
MINUTE = 60_000


def test_a_fleet_that_was_never_started_has_no_replicas(make):
    assert make().count(now=NOON) == Replicas(running=0, requested=0)


def test_as_many_processes_run_as_are_wanted(make, home):
    fleet = make()

    fleet.scale_to(3, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=3, requested=3)
    assert len(set(pids(home))) == 3


def test_a_new_process_is_starting_for_as_long_as_the_file_says(make):
    fleet = make(start_ms=5_000)
    fleet.scale_to(1, now=NOON)
    fleet.scale_to(2, now=NOON + 3_000)

    assert fleet.count(now=NOON + 4_999) == Replicas(running=0, starting=2, requested=2)
    assert fleet.count(now=NOON + 5_000) == Replicas(running=1, starting=1, requested=2)
    assert fleet.count(now=NOON + 8_000) == Replicas(running=2, requested=2)


def test_the_youngest_surplus_processes_are_asked_to_end(make, home):
    fleet = make()
    fleet.scale_to(1, now=NOON)
    [oldest] = pids(home)
    fleet.scale_to(3, now=NOON + 1)

    fleet.scale_to(1, now=NOON + 2)

    assert fleet.count(now=NOON + 2) == Replicas(running=1, requested=1)
    assert pids(home) == [oldest]
    for one in read_ledger(home).started:
        if one.pid != oldest:
            soon_gone(one.pid, one.birth)


def test_each_process_gets_the_fleets_name_and_its_replica_id(make, home, tmp_path):
    program = 'echo "$PENSTOCK_FLEET $PENSTOCK_REPLICA $COLOUR $PWD" > $OUT; exec sleep 600'
    out = tmp_path / "out"
    fleet = make(
        ("sh", "-c", program), env={"OUT": str(out), "COLOUR": "green"}, folder=str(tmp_path)
    )

    fleet.scale_to(1, now=NOON)

    told = eventually(lambda: out.exists() and out.read_text().split(), within_s=PATIENCE_S)
    [started] = read_ledger(home).started
    assert told == ["mail", started.replica, "green", str(tmp_path)]


def test_a_process_that_is_asked_to_end_is_killed_after_its_drain_time(make, home, tmp_path):
    fleet = _deaf_fleet(make, tmp_path, drain_ms=MINUTE)
    [one] = read_ledger(home).started

    fleet.scale_to(0, now=NOON)
    fleet.tend(now=NOON + MINUTE - 1)
    (tmp_path / "ready").unlink()
    eventually((tmp_path / "ready").exists, within_s=PATIENCE_S)  # it is alive, and goes on
    assert fleet.count(now=NOON + MINUTE - 1) == Replicas(running=0, requested=0)
    fleet.tend(now=NOON + MINUTE)

    soon_gone(one.pid, one.birth)
    fleet.tend(now=NOON + MINUTE + 1)
    assert read_ledger(home).started == []


def test_ending_processes_are_replaced_if_they_are_wanted_again(make, home, tmp_path):
    fleet = _deaf_fleet(make, tmp_path)
    fleet.scale_to(0, now=NOON)

    fleet.scale_to(1, now=NOON + 1)

    assert fleet.count(now=NOON + 1) == Replicas(running=1, requested=1)
    assert len(read_ledger(home).started) == 2


# ---- crashes


def test_a_process_that_crashes_is_restarted_at_the_next_tick(make, home):
    fleet = make()
    fleet.scale_to(2, now=NOON)
    first, second = pids(home)
    kill(first)

    assert fleet.count(now=NOON + MINUTE) == Replicas(running=1, requested=1)
    fleet.tend(now=NOON + MINUTE)

    assert fleet.count(now=NOON + MINUTE) == Replicas(running=2, requested=2)
    assert second in pids(home)
    assert first not in pids(home)


def test_processes_that_keep_crashing_are_restarted_ever_more_rarely(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(1, now=NOON)
    now, pauses = NOON, []

    for _ in range(9):
        _all_dead(home)
        _tend(fleet, now)
        if read_ledger(home).owed:
            pauses.append(read_ledger(home).wait_until - now)
            now = read_ledger(home).wait_until
            _tend(fleet, now - 1)
            assert read_ledger(home).owed == 1
            _tend(fleet, now)
            assert read_ledger(home).owed == 0

    assert pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_while_processes_keep_crashing_no_more_are_started(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(2, now=NOON)
    _all_dead(home)
    fleet.tend(now=NOON)
    _all_dead(home)

    with pytest.raises(ReplicasUnavailable, match="mail: its processes crashed 2 times in a row"):
        fleet.scale_to(3, now=NOON + 1)

    assert fleet.count(now=NOON + 1) == Replicas(running=0, requested=3)


def test_processes_that_crash_together_count_as_one_crash(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(8, now=NOON)
    _all_dead(home)

    fleet.tend(now=NOON)

    assert read_ledger(home).crashes == 1
    assert len(read_ledger(home).started) == 8  # all of them again, at once the first time


def test_a_crash_loop_is_reported_until_the_processes_run_steadily(make, home, tmp_path):
    repaired = tmp_path / "repaired"
    fleet = make(("sh", "-c", f"test -e {repaired} && exec sleep 600; exit 3"))
    fleet.scale_to(1, now=NOON)
    _all_dead(home)
    fleet.tend(now=NOON)  # once may be chance
    _all_dead(home)

    with pytest.raises(ReplicasUnavailable, match=r"2 times in a row \(exit code 3\).* in 1 s"):
        fleet.tend(now=NOON + 10)
    repaired.touch()
    with pytest.raises(ReplicasUnavailable, match="they were restarted"):
        fleet.tend(now=NOON + 1_010)
    with pytest.raises(ReplicasUnavailable):
        fleet.tend(now=NOON + 31_009)
    fleet.tend(now=NOON + 31_010)
    assert fleet.count(now=NOON + 31_010) == Replicas(running=1, requested=1)


def test_a_repaired_command_is_started_at_once(make, home):
    broken = make(CRASHES)
    broken.scale_to(2, now=NOON)
    for _ in range(4):
        _all_dead(home)
        _tend(broken, read_ledger(home).wait_until)
    _all_dead(home)
    broken.close()

    repaired = make()
    repaired.tend(now=NOON)
    repaired.scale_to(2, now=NOON)

    assert repaired.count(now=NOON) == Replicas(running=2, requested=2)


def test_a_crash_after_a_while_is_not_a_crash_at_the_start(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(1, now=NOON)
    _all_dead(home)
    fleet.tend(now=NOON)
    _all_dead(home)

    fleet.tend(now=NOON + 30_000)

    assert read_ledger(home).crashes == 1
    assert read_ledger(home).owed == 0


def test_a_process_that_exits_by_itself_is_not_restarted(make, home):
    fleet = make(("sh", "-c", "exit 0"))
    fleet.scale_to(1, now=NOON)
    _all_dead(home)

    fleet.tend(now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)
    assert read_ledger(home).started == []


def test_a_program_that_does_not_exist_cannot_be_started(make):
    fleet = make(("/nowhere/to/be/found",))

    with pytest.raises(ReplicasUnavailable, match=r"a process could not be started: .*nowhere"):
        fleet.scale_to(1, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)


# ---- one autoscaler after the other


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
    after.tend(now=NOON)

    assert after.count(now=NOON) == Replicas(running=1, requested=1)


def test_an_unrelated_process_that_reuses_a_pid_is_left_alone(make, home):
    fleet = make()
    fleet.scale_to(1, now=NOON)
    [mine] = read_ledger(home).started
    file = home / "mail.json"
    file.write_text(file.read_text().replace(mine.birth, f"{mine.birth}0"))
    try:
        assert fleet.count(now=NOON) == Replicas(running=0, requested=0)
        fleet.scale_to(0, now=NOON)

        assert birth(mine.pid) == mine.birth
    finally:
        os.kill(mine.pid, signal.SIGKILL)


def test_a_signal_reaches_only_the_process_with_the_right_start_time():
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert not send(child.pid, "another time", signal.SIGKILL)
        assert child.poll() is None
        assert send(child.pid, birth(child.pid) or "", signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    finally:
        child.kill()
    assert birth(child.pid) is None


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
        soon_gone(one.pid, one.birth)
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
    mine.tend(now=NOON)

    mine.close()

    assert pids(home) == []


def _deaf_fleet(make, tmp_path: Path, **more):
    ready = tmp_path / "ready"
    fleet = make(DEAF, env={"READY": str(ready)}, **more)
    fleet.scale_to(1, now=NOON)
    eventually(ready.exists, within_s=PATIENCE_S)
    return fleet


def _tend(fleet: ProcessReplicas, now: int) -> None:
    with suppress(ReplicasUnavailable):
        fleet.tend(now=now)


def _all_dead(home: Path) -> None:
    for one in read_ledger(home).started:
        soon_gone(one.pid, one.birth)


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
