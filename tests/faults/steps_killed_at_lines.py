"""Jobs of ten steps in processes that kill themselves at a random line of our code.

    python -m tests.faults.steps_killed_at_lines STORE-URL LOG KILLS

Each forked process first logs `kept STEP` for what is recorded, then runs the job from where it is;
a step logs `call STEP`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import penstock
from penstock import Penstock, step_sync
from penstock.domain.message.lifecycle import State
from penstock.worker.claimed_job import ClaimedJob
from tests.client.jobs.driver import JobDriver
from tests.faults.killed_steps import STEPS

LEASE_MS = 20
OURS = str(Path(penstock.__file__).parent)
FIRST_LINES = 4_000  # of a run: how many it takes is measured as soon as one gets to its end


def main(url: str, log_path: str, kills: str) -> None:
    log = os.open(log_path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    app = Penstock(url)

    def note(text: str) -> None:
        os.write(log, f"{text}\n".encode())

    def do(name: str) -> str:
        note(f"call {name}")
        return name

    @app.job(queue="farm", attempts=10_000)
    def run(job: int) -> None:
        for number in range(STEPS):
            name = f"{job}.{number}"
            assert step_sync(name, do, name) == name

    dice, left, job, lines = random.Random(19), int(kills), 0, FIRST_LINES
    while left > 0:
        job += 1
        sent = run.enqueue(job).id
        app.close()  # before the fork
        is_done = False
        while not is_done:
            kill_at = dice.randrange(lines) if left > 0 else 0
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                for one in app.jobs.steps(sent).steps:
                    note(f"kept {one.name}")
                os.write(writer, str(run_traced(app, sent, kill_at)).encode())
                os._exit(0)
            os.close(writer)
            is_done = os.waitpid(pid, 0)[1] == 0
            left -= not is_done
            lines = max(lines, int(os.read(reader, 20) or 0))
            os.close(reader)


def run_traced(app: Penstock, sent: str, kill_at: int) -> int:
    """Run the job, if it is not done; returns how many lines of ours that took."""
    driver = JobDriver(app, app.clock, "farm")
    claimed: list[ClaimedJob] = []
    while not claimed:  # until the lease of the killed process has expired
        if app.jobs.state(sent) is State.DONE:
            return 0
        claimed = driver.claim(lease_ms=LEASE_MS)
    seen = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            seen += 1
            if seen == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    acts = [driver.act_of(job) for job in claimed]
    assert driver.act(*acts) == [None] * len(acts)
    sys.settrace(None)
    app.close()
    return seen


if __name__ == "__main__":
    main(*sys.argv[1:])
