"""Programs that start others: a replica is its process group, not only the leader of it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas.launch import Launch, orphans, start_time
from penstock.outbound.replicas.ledger import StartedProcess
from tests.clocks import NOON
from tests.outbound.replicas.conftest import PATIENCE_S, kill, read_ledger, soon_gone
from tests.support.waiting import eventually

MINUTE = 60_000
FLEETS = "tests.outbound.replicas.conftest"
# A shell around the real program, which says who it is and when it was asked to end.
WRAPPED = """
(trap 'echo ended >> $OUT.ended; {on_term}' TERM
 trap 'echo asked >> $OUT.asked' USR1
 sh -c 'echo $PPID' > $OUT.tmp && mv $OUT.tmp $OUT
 while :; do sleep 0.05; done)
echo ended
"""


@pytest.fixture
def wrapped(make, tmp_path: Path):
    """A fleet of one shell with one child, and the child's number and start_time."""

    def start(on_term: str = "exit", **more):
        out = tmp_path / "child"
        script = WRAPPED.format(on_term=on_term)
        fleet = make(("bash", "-c", script), env={"OUT": str(out)}, **more)
        fleet.scale_to(1, now=NOON)
        child = int(eventually(lambda: out.exists() and out.read_text(), within_s=PATIENCE_S))
        started = start_time(child)
        assert started is not None
        return fleet, child, started

    return start


def test_the_program_inside_a_shell_is_asked_to_end(wrapped, tmp_path):
    fleet, child, started = wrapped()

    fleet.scale_to(0, now=NOON)

    soon_gone(child, started)
    assert (tmp_path / "child.ended").read_text() == "ended\n"


def test_a_replica_lives_as_long_as_any_process_of_its_group(wrapped, home):
    fleet, child, started = wrapped()
    [leader] = read_ledger(home).started
    kill(leader.pid)

    fleet.maintain(now=NOON + 1)

    assert fleet.count(now=NOON + 1) == Replicas(running=1, requested=1)
    fleet.scale_to(0, now=NOON + 2)  # and it can still be asked to end
    soon_gone(child, started)
    _group_is_gone(leader)
    fleet.maintain(now=NOON + 3)
    assert read_ledger(home).started == []


def test_a_process_that_does_not_end_in_time_is_killed_though_its_group_leader_is_gone(
    wrapped, home
):
    fleet, child, started = wrapped(on_term=":", drain_ms=MINUTE)
    [leader] = read_ledger(home).started
    fleet.scale_to(0, now=NOON)
    soon_gone(leader.pid, leader.start_time)  # the shell ends at once

    fleet.maintain(now=NOON + MINUTE - 1)
    assert start_time(child) == started
    fleet.maintain(now=NOON + MINUTE)

    soon_gone(child, started)
    _group_is_gone(leader)
    fleet.maintain(now=NOON + MINUTE + 1)
    assert read_ledger(home).started == []


def test_the_next_autoscaler_finds_a_process_whose_group_leader_is_gone(wrapped, make, home):
    _, child, started = wrapped()
    [leader] = read_ledger(home).started
    kill(leader.pid)

    after = make()

    assert after.count(now=NOON) == Replicas(running=1, requested=1)
    after.scale_to(0, now=NOON)
    soon_gone(child, started)


def test_a_crash_counts_when_the_whole_group_has_ended(wrapped, home):
    fleet, child, _ = wrapped()
    [leader] = read_ledger(home).started
    kill(leader.pid)
    fleet.maintain(now=NOON + 1)
    assert read_ledger(home).crashes == 0

    kill(child)
    _group_is_gone(leader)
    fleet.maintain(now=NOON + 2)

    assert (read_ledger(home).crashes, read_ledger(home).last_exit) == (1, "signal SIGKILL")


def test_a_group_is_not_ours_unless_its_processes_carry_the_mark(wrapped, home):
    _, child, _ = wrapped()
    [leader] = read_ledger(home).started
    mark = f"PENSTOCK_REPLICA={leader.replica}"
    assert orphans(leader.pid, mark) == []  # it has its leader

    kill(leader.pid)

    assert child in orphans(leader.pid, mark)
    assert orphans(leader.pid, "PENSTOCK_REPLICA=another") == []
    os.killpg(leader.pid, signal.SIGKILL)


def test_child_processes_of_a_penstock_worker_are_not_asked_to_end(make, tmp_path, monkeypatch):
    """A job that runs a program finishes while its worker drains."""
    out = tmp_path / "child"
    script = WRAPPED.format(on_term="exit")
    monkeypatch.setattr(f"{FLEETS}.SLEEP", ("bash", "-c", f"trap '' TERM; {script}"))
    fleet = make(app="shop:app", env={"OUT": str(out)}, start_ms=0)
    fleet.scale_to(1, now=NOON)
    child = int(eventually(lambda: out.exists() and out.read_text(), within_s=PATIENCE_S))

    fleet.scale_to(0, now=NOON)

    for times in (1, 2):  # with the second answer any earlier signal has been answered, too
        os.kill(child, signal.SIGUSR1)
        asked = "asked\n" * times
        eventually(partial(_said, tmp_path / "child.asked", asked), within_s=PATIENCE_S)
    assert not (tmp_path / "child.ended").exists()


def _group_is_gone(leader: StartedProcess) -> None:
    """With whatever its members had started last."""
    mark = Launch.mark(leader.replica)
    eventually(lambda: not orphans(leader.pid, mark), within_s=PATIENCE_S)


def _said(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text
