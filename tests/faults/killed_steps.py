"""A job of ten steps in processes that kill themselves at the boundaries of its steps.

    python -m tests.faults.killed_steps STORE-URL LOG

Each forked process runs the job from where it is, until it dies.  The log has a line for each call
of a step, and one for each death before a step was recorded.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from penstock import Penstock, step_sync
from penstock.api.jobs import steps
from penstock.worker.claimed_job import ClaimedJob
from tests.client.jobs.driver import JobDriver

STEPS = 10
LEASE_MS = 20


class Dying:
    """Kills its process before (even places) or after (odd places) a step is recorded."""

    def __init__(self, channel: Any, log: int, place: int) -> None:
        self._ask = channel.ask
        self._log = log
        self._left = place
        channel.ask = self.ask

    def ask(self, ask: Any, tx: object = None) -> Any:
        if ask.operation is not steps.RECORD:
            return self._ask(ask, tx)
        if self._left == 0:
            os.write(self._log, f"died before {ask.body.name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        answer = self._ask(ask, tx)
        if self._left == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 2
        return answer


def main(url: str, log_path: str) -> None:
    log = os.open(log_path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    app = Penstock(url)

    def do(name: str) -> str:
        os.write(log, f"{name}\n".encode())
        return name

    @app.job(queue="farm", attempts=1_000)
    def run() -> None:
        for number in range(STEPS):
            assert step_sync(f"step {number}", do, f"step {number}") == f"step {number}"

    run.enqueue()
    app.close()
    for number in range(1_000):
        pid = os.fork()
        if pid == 0:
            run_until_killed(app, log, place=number % 4)
            os._exit(0)
        if os.waitpid(pid, 0)[1] == 0:
            return
    raise AssertionError("the job has not ended")


def run_until_killed(app: Penstock, log: int, *, place: int) -> None:
    driver = JobDriver(app, app.clock, "farm")
    claimed: list[ClaimedJob] = []
    while not claimed:  # until the lease of the killed process has expired
        claimed = driver.claim(lease_ms=LEASE_MS)
    Dying(app.backend.channel, log, place)
    acts = [driver.act_of(job) for job in claimed]
    assert driver.act(*acts) == [None] * len(acts)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
