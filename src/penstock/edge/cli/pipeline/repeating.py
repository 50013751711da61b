"""`penstock pipeline run --every`: one process per run, until it is stopped.

A run that crashes, with its JVM, does not end the others, and its memory is returned.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.domain.duration import duration_text
from penstock.domain.lake.run_times import next_run_at, skipped_runs
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.stop_signal import StopSignal
from penstock.ports.clock import Clock

EVERY = "--every"
_ENV = "PENSTOCK_PIPELINE_RUN_EVERY"
_LOOK_S = 0.2  # how soon the end of a run is noticed
_STOPPING_S = 60.0  # how long a stopped run may take to cancel its tasks and release its lock

Run = Callable[[], bool]  # False: it was stopped


class StopWaiter(Protocol):
    def wait(self, timeout_s: float) -> bool:
        """True once the command is to stop."""
        ...


def check(args: Namespace) -> None:
    if args.every < 1:
        raise UsageError(f"{EVERY} must be a duration such as 1h")
    if args.wait:
        raise UsageError(f"{EVERY} and --wait exclude each other")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        raise UsageError(f"{EVERY} does not work under spark-submit")


def repeat(run: Run, *, every_ms: int, clock: Clock, pause: StopWaiter) -> None:
    """Run at this interval until it is stopped.  Intervals that pass during a run are skipped."""
    first_at = due_at = clock.now()
    while run():
        now = clock.now()
        skipped = skipped_runs(due_at, every_ms, now=now)
        if skipped:
            exits.note(f"the run took longer than {duration_text(every_ms)}: skipped {skipped}")
        due_at = next_run_at(first_at, every_ms, now=now)
        if pause.wait((due_at - now) / 1000):
            return


def run_every(args: Namespace) -> int:
    from penstock.wiring.broker import own_clock

    stop_signal = StopSignal()
    command = [sys.executable, "-m", "penstock", "pipeline", "run", *run_arguments(args.argv)]
    repeat(
        lambda: run_process(command, stop_signal),
        every_ms=args.every,
        clock=own_clock(),
        pause=stop_signal,
    )
    return exits.OK


def run_process(command: Sequence[str], pause: StopWaiter) -> bool:
    """Run it to its end, whatever that is; False if it was stopped instead."""
    environ = {name: text for name, text in os.environ.items() if name != _ENV}
    # A session of its own: Ctrl-C is for this process, which then stops that one.
    process = subprocess.Popen(command, env=environ, start_new_session=True)
    while process.poll() is None:
        if pause.wait(_LOOK_S):
            _stop(process)
            return False
    if process.returncode:
        exits.note(
            f"the run ended with code {process.returncode}; it is repeated at the next interval"
        )
    return True


def run_arguments(argv: Sequence[str]) -> list[str]:
    """The arguments of the command without those that repeat it."""
    found: list[str] = []
    rest = iter(argv)
    for argument in rest:
        if argument == EVERY:
            next(rest)
        elif not argument.startswith(f"{EVERY}="):
            found.append(argument)
    return found


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOPPING_S)
    except subprocess.TimeoutExpired:  # a run can be killed at any moment
        process.kill()
        process.wait()
