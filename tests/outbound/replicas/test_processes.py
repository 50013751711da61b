"""Starting and ending the processes of a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.errors import ReplicasUnavailable
from penstock.domain.scaling.recommendation import Replicas
from tests.clocks import NOON
from tests.outbound.replicas.conftest import (
    PATIENCE_S,
    group_soon_gone,
    pids,
    read_ledger,
    soon_gone,
)
from tests.support.waiting import eventually

DEAF = ("sh", "-c", "trap '' TERM; while :; do touch $READY; sleep 0.05; done")
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
            soon_gone(one.pid, one.start_time)


def test_each_process_gets_the_fleets_name_and_its_replica_id(make, home, tmp_path):
    program = 'echo "$PENSTOCK_FLEET $PENSTOCK_REPLICA $COLOUR $PWD" > $OUT; exec sleep 600'
    out = tmp_path / "out"
    fleet = make(
        ("sh", "-c", program), env={"OUT": str(out), "COLOUR": "green"}, folder=str(tmp_path)
    )

    fleet.scale_to(1, now=NOON)

    words = eventually(lambda: out.exists() and out.read_text().split(), within_s=PATIENCE_S)
    [started] = read_ledger(home).started
    assert words == ["mail", started.replica, "green", str(tmp_path)]


def test_a_process_that_is_asked_to_end_is_killed_after_its_drain_time(make, home, tmp_path):
    fleet = _deaf_fleet(make, tmp_path, drain_ms=MINUTE)
    [one] = read_ledger(home).started

    fleet.scale_to(0, now=NOON)
    fleet.maintain(now=NOON + MINUTE - 1)
    (tmp_path / "ready").unlink()
    eventually((tmp_path / "ready").exists, within_s=PATIENCE_S)  # it is alive and keeps running
    assert fleet.count(now=NOON + MINUTE - 1) == Replicas(running=0, requested=0)
    fleet.maintain(now=NOON + MINUTE)

    group_soon_gone(one)
    fleet.maintain(now=NOON + MINUTE + 1)
    assert read_ledger(home).started == []


def test_ending_processes_are_replaced_if_they_are_wanted_again(make, home, tmp_path):
    fleet = _deaf_fleet(make, tmp_path)
    fleet.scale_to(0, now=NOON)

    fleet.scale_to(1, now=NOON + 1)

    assert fleet.count(now=NOON + 1) == Replicas(running=1, requested=1)
    assert len(read_ledger(home).started) == 2


# ---- crashes


def test_a_program_that_does_not_exist_cannot_be_started(make):
    fleet = make(("/nowhere/to/be/found",))

    with pytest.raises(ReplicasUnavailable, match=r"a process could not be started: .*nowhere"):
        fleet.scale_to(1, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)


# ---- one autoscaler after the other


def _deaf_fleet(make, tmp_path: Path, **more):
    ready = tmp_path / "ready"
    fleet = make(DEAF, env={"READY": str(ready)}, **more)
    fleet.scale_to(1, now=NOON)
    eventually(ready.exists, within_s=PATIENCE_S)
    return fleet
