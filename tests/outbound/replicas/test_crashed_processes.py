"""Processes that crash: restarts, growing pauses, and recovery."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from penstock.domain.errors import ReplicasUnavailable
from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas.processes import ProcessReplicas
from tests.clocks import NOON
from tests.outbound.replicas.conftest import kill, pids, read_ledger, soon_gone

CRASHES = ("sh", "-c", "exit 3")
MINUTE = 60_000


def test_a_process_that_crashes_is_restarted_at_the_next_tick(make, home):
    fleet = make()
    fleet.scale_to(2, now=NOON)
    first, second = pids(home)
    kill(first)

    assert fleet.count(now=NOON + MINUTE) == Replicas(running=1, requested=1)
    fleet.maintain(now=NOON + MINUTE)

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
        if read_ledger(home).to_start:
            pauses.append(read_ledger(home).wait_until - now)
            now = read_ledger(home).wait_until
            _tend(fleet, now - 1)
            assert read_ledger(home).to_start == 1
            _tend(fleet, now)
            assert read_ledger(home).to_start == 0

    assert pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_while_processes_keep_crashing_no_more_are_started(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(2, now=NOON)
    _all_dead(home)
    fleet.maintain(now=NOON)
    _all_dead(home)

    with pytest.raises(ReplicasUnavailable, match="mail: its processes crashed 2 times in a row"):
        fleet.scale_to(3, now=NOON + 1)

    assert fleet.count(now=NOON + 1) == Replicas(running=0, requested=3)


def test_processes_that_crash_together_count_as_one_crash(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(8, now=NOON)
    _all_dead(home)

    fleet.maintain(now=NOON)

    assert read_ledger(home).crashes == 1
    assert len(read_ledger(home).started) == 8  # all of them again, at once the first time


def test_a_crash_loop_is_reported_until_the_processes_run_steadily(make, home, tmp_path):
    repaired = tmp_path / "repaired"
    fleet = make(("sh", "-c", f"test -e {repaired} && exec sleep 600; exit 3"))
    fleet.scale_to(1, now=NOON)
    _all_dead(home)
    fleet.maintain(now=NOON)  # once may be chance
    _all_dead(home)

    with pytest.raises(ReplicasUnavailable, match=r"2 times in a row \(exit code 3\).* in 1 s"):
        fleet.maintain(now=NOON + 10)
    repaired.touch()
    with pytest.raises(ReplicasUnavailable, match="they were restarted"):
        fleet.maintain(now=NOON + 1_010)
    with pytest.raises(ReplicasUnavailable):
        fleet.maintain(now=NOON + 31_009)
    fleet.maintain(now=NOON + 31_010)
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
    repaired.maintain(now=NOON)
    repaired.scale_to(2, now=NOON)

    assert repaired.count(now=NOON) == Replicas(running=2, requested=2)


def test_a_crash_after_a_while_is_not_a_crash_at_the_start(make, home):
    fleet = make(CRASHES)
    fleet.scale_to(1, now=NOON)
    _all_dead(home)
    fleet.maintain(now=NOON)
    _all_dead(home)

    fleet.maintain(now=NOON + 30_000)

    assert read_ledger(home).crashes == 1
    assert read_ledger(home).to_start == 0


def test_a_process_that_exits_by_itself_is_not_restarted(make, home):
    fleet = make(("sh", "-c", "exit 0"))
    fleet.scale_to(1, now=NOON)
    _all_dead(home)

    fleet.maintain(now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)
    assert read_ledger(home).started == []


def _tend(fleet: ProcessReplicas, now: int) -> None:
    with suppress(ReplicasUnavailable):
        fleet.maintain(now=now)


def _all_dead(home: Path) -> None:
    for one in read_ledger(home).started:
        soon_gone(one.pid, one.start_time)
