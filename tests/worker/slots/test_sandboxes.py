"""Sandboxes as a worker uses them: real processes that do what a sandbox does, without delay."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain.message.lease import Verb
from penstock.worker.assignment import Assignment
from penstock.worker.claimed_job import ClaimedJob, JobAct, RunsIn, StopReason
from penstock.worker.processes.frames import ProcessAssignment
from penstock.worker.slots.sandboxes import Sandboxes
from tests.clocks import ManualClock
from tests.support.waiting import eventually
from tests.worker.test_outcomes import AHandler, some_job

PROGRAM = """
import os, socket, sys, time
from penstock.domain.message.lease import Verb
from penstock.worker.claimed_job import JobAct
from penstock.worker.processes.frames import JobEnded, Prepared, Wire

wire = Wire(socket.socket(fileno=int(sys.argv[2])))
wire.receive()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
wire.send(Prepared())
while (frame := wire.receive()) is not None:
    act = JobAct(receipt=frame.job.receipt, verb=Verb.COMPLETE, text=str(os.getpid()))
    wire.send(JobEnded(act))
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file; sandboxes become ready as soon as it exists."""
    return tmp_path / "gate"


@pytest.fixture
def sandboxes(gate: Path, tmp_path: Path, clock: ManualClock) -> Iterator[Sandboxes]:
    program = tmp_path / "sandbox.py"
    program.write_text(PROGRAM)
    assignment = ProcessAssignment(app="shop:app", work=Assignment(queues=("mail",)))
    made = Sandboxes([sys.executable, str(program), str(gate)], assignment, clock)
    yield made
    made.close()


def a_job(receipt: str, clock: ManualClock) -> ClaimedJob:
    return some_job(
        receipt=receipt,
        handler=AHandler(),
        runs_in=RunsIn.SANDBOX,
        place=0,
        taken_at=clock.now(),
        renewed_at=clock.now(),
        time_limit_ms=2_000,
        lease_ms=30_000,
    )


class Slot:
    """Runs one job in a sandbox, on a thread of its own."""

    def __init__(
        self, sandboxes: Sandboxes, job: ClaimedJob, begun: list[ClaimedJob], now: int
    ) -> None:
        self.act: JobAct | None = None

        def begin(job: ClaimedJob) -> bool:
            begun.append(job)
            return job.begin(now)

        def run() -> None:
            self.act = sandboxes.run(job, begin)

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def result(self) -> JobAct | None:
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.act


def test_the_job_that_has_waited_longest_gets_the_first_sandbox(
    sandboxes, gate, clock, monkeypatch
):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # they start one after another
    jobs = [a_job(str(n), clock) for n in range(5)]
    begun: list[ClaimedJob] = []
    slots = []
    for job in jobs:
        slots.append(Slot(sandboxes, job, begun, clock.now()))
        eventually(lambda: len(sandboxes._waiting) == len(slots))
    assert len(sandboxes._starting) <= 1

    gate.touch()

    acts = [slot.result() for slot in slots]
    assert [act and act.verb for act in acts] == [Verb.COMPLETE] * 5
    assert begun == jobs


def test_a_job_that_is_given_back_while_it_waits_leaves_its_slot_at_once(sandboxes, clock):
    job = a_job("1", clock)
    slot = Slot(sandboxes, job, [], clock.now())
    eventually(lambda: job.stop_handler is not None)

    job.stop(StopReason.GIVEN_BACK)

    assert slot.result() is None
    assert not job.started_at


def test_a_sandbox_that_died_while_it_was_idle_is_not_the_next_jobs_fault(sandboxes, gate, clock):
    gate.touch()
    first = Slot(sandboxes, a_job("1", clock), [], clock.now()).result()
    assert first is not None
    [idle] = sandboxes._idle

    os.kill(int(first.text or ""), signal.SIGKILL)
    eventually(lambda: not idle.is_alive)
    second = Slot(sandboxes, a_job("2", clock), [], clock.now()).result()

    assert second is not None
    assert (second.verb, second.receipt) == (Verb.COMPLETE, "2")
    assert second.text != first.text


def test_a_job_for_which_no_sandbox_starts_is_given_back_for_a_while(clock):
    assignment = ProcessAssignment(app="shop:app", work=Assignment(queues=("mail",)))
    broken = Sandboxes([sys.executable, "-c", "raise SystemExit(5)"], assignment, clock)

    act = Slot(broken, a_job("1", clock), [], clock.now()).result()

    assert act == JobAct(receipt="1", verb=Verb.RELEASE, delay_ms=10_000)


def test_one_that_waits_for_a_sandbox_may_wait_as_long_as_its_lease_needs_no_extension(clock):
    job = a_job("1", clock)
    assert job.start_by == clock.now() + 1_000  # half its time limit

    job.has_slot = True

    assert job.start_by == clock.now() + 10_000  # a third of its lease
