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


def test_a_fleet_that_was_never_started_has_nobody(make):
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


def test_of_those_that_are_too_many_the_youngest_are_told_to_end(make, home):
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


def test_a_fleet_is_told_its_name_and_each_process_which_one_it_is(make, home, tmp_path):
    program = 'echo "$PENSTOCK_FLEET $PENSTOCK_REPLICA $COLOUR $PWD" > $OUT; exec sleep 600'
    out = tmp_path / "out"
    fleet = make(
        ("sh", "-c", program), env={"OUT": str(out), "COLOUR": "green"}, folder=str(tmp_path)
    )

    fleet.scale_to(1, now=NOON)

    told = eventually(lambda: out.exists() and out.read_text().split(), within_s=PATIENCE_S)
    [started] = read_ledger(home).started
    assert told == ["mail", started.replica, "green", str(tmp_path)]


def test_a_process_that_is_told_to_end_has_its_drain_time_and_not_more(make, home, tmp_path):
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


def test_those_that_are_ending_are_replaced_if_they_are_wanted_again(make, home, tmp_path):
    fleet = _deaf_fleet(make, tmp_path)
    fleet.scale_to(0, now=NOON)

    fleet.scale_to(1, now=NOON + 1)

    assert fleet.count(now=NOON + 1) == Replicas(running=1, requested=1)
    assert len(read_ledger(home).started) == 2


# ---- crashes


def test_a_process_that_crashes_is_started_again_at_the_next_look(make, home):
    fleet = make()
    fleet.scale_to(2, now=NOON)
    first, second = pids(home)
    kill(first)

    assert fleet.count(now=NOON + MINUTE) == Replicas(running=1, requested=1)
    fleet.tend(now=NOON + MINUTE)

    assert fleet.count(now=NOON + MINUTE) == Replicas(running=2, requested=2)
    assert second in pids(home)
    assert first not in pids(home)


def test_processes_that_keep_dying_are_started_ever_more_rarely(make, home):
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


def test_while_they_keep_dying_more_of_them_are_refused_and_asked_for_later(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(2, now=NOON)
    _all_dead(home)
    fleet.tend(now=NOON)
    _all_dead(home)

    with pytest.raises(ReplicasUnavailable, match="mail: its processes crashed 2 times in a row"):
        fleet.scale_to(3, now=NOON + 1)

    assert fleet.count(now=NOON + 1) == Replicas(running=0, requested=3)


def test_processes_that_crash_together_are_one_crash(make, home):
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


def test_who_has_lived_for_a_while_did_not_die_of_its_start(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(1, now=NOON)
    _all_dead(home)
    fleet.tend(now=NOON)
    _all_dead(home)

    fleet.tend(now=NOON + 30_000)

    assert read_ledger(home).crashes == 1
    assert read_ledger(home).owed == 0


def test_one_that_ends_by_itself_is_not_started_again(make, home):
    fleet = make(("sh", "-c", "exit 0"))
    fleet.scale_to(1, now=NOON)
    _all_dead(home)

    fleet.tend(now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)
    assert read_ledger(home).started == []


def test_a_program_that_is_not_there_is_refused(make):
    fleet = make(("/nowhere/to/be/found",))

    with pytest.raises(ReplicasUnavailable, match=r"a process could not be started: .*nowhere"):
        fleet.scale_to(1, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)


# ---- one autoscaler after the other


def test_what_was_started_is_found_again_by_the_next_autoscaler(make, home):
    make().scale_to(2, now=NOON)
    before = pids(home)

    after = make()
    assert after.count(now=NOON) == Replicas(running=2, requested=2)
    after.scale_to(1, now=NOON)

    assert len(pids(home)) == 1
    assert pids(home)[0] in before


def test_what_ended_while_nobody_looked_is_not_counted(make, home):
    make().scale_to(2, now=NOON)
    kill(pids(home)[0])

    after = make()
    after.tend(now=NOON)

    assert after.count(now=NOON) == Replicas(running=1, requested=1)


def test_a_stranger_who_has_got_the_number_of_one_that_ended_is_left_alone(make, home):
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


def test_a_signal_meets_only_who_was_born_when_it_says():
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert not send(child.pid, "another time", signal.SIGKILL)
        assert child.poll() is None
        assert send(child.pid, birth(child.pid) or "", signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    finally:
        child.kill()
    assert birth(child.pid) is None


def test_a_file_that_was_spoilt_is_told_and_nothing_is_done(make, home):
    fleet = make()
    fleet.scale_to(1, now=NOON)
    text = (home / "mail.json").read_text()
    (home / "mail.json").write_text("{")

    with pytest.raises(ReplicasUnavailable, match=r"mail\.json cannot be read"):
        fleet.scale_to(0, now=NOON)

    (home / "mail.json").write_text(text)
    assert len(pids(home)) == 1


# ---- the end


def test_the_end_of_the_autoscaler_is_that_of_its_processes(make, home, clock):
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


def test_one_that_has_only_looked_ends_nothing(make, home, clock):
    make().scale_to(1, now=clock.now())

    onlooker = make()
    onlooker.count(now=clock.now())
    onlooker.close()

    assert len(pids(home)) == 1


def test_an_autoscaler_that_ends_leaves_the_processes_of_another_that_lives(
    make, home, start_elsewhere
):
    [theirs] = start_elsewhere(is_to_live=True)
    mine = make()
    mine.scale_to(2, now=NOON)

    mine.close()

    assert pids(home) == [theirs]


def test_an_autoscaler_that_ends_takes_along_the_processes_of_one_that_is_dead(
    make, home, start_elsewhere
):
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
