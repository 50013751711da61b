"""`penstock pipeline run --every`: intervals, runs that fail or take long, and stopping."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.edge.cli.pipeline.repeating import repeat, run_arguments, run_process
from tests.clocks import ManualClock
from tests.edge.cli.conftest import Run
from tests.edge.process import ROOT

HOUR_MS = 3_600_000


class Pauses:
    """Lets the time pass that a command waits for, and stops it after a number of waits."""

    def __init__(self, clock: ManualClock, *, stops_after: int) -> None:
        self._clock = clock
        self._stops_after = stops_after
        self.waits: list[float] = []

    def wait(self, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        self._clock.advance(ms=int(timeout_s * 1000))
        return len(self.waits) == self._stops_after


def test_runs_begin_at_the_interval_however_long_each_takes() -> None:
    clock = ManualClock()
    start = clock.now()
    pauses = Pauses(clock, stops_after=3)
    begun: list[int] = []

    def run() -> bool:
        begun.append((clock.now() - start) // 60_000)
        clock.advance(minutes=10)
        return True

    repeat(run, every_ms=HOUR_MS, clock=clock, pause=pauses)

    assert begun == [0, 60, 120]
    assert pauses.waits == [3_000.0] * 3


def test_intervals_that_pass_during_a_run_are_skipped_and_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = ManualClock()
    start = clock.now()
    begun: list[int] = []

    def run() -> bool:
        begun.append((clock.now() - start) // 60_000)
        clock.advance(minutes=130 if len(begun) == 1 else 1)
        return True

    repeat(run, every_ms=HOUR_MS, clock=clock, pause=Pauses(clock, stops_after=2))

    assert begun == [0, 180]
    assert capsys.readouterr().err == "penstock: the run took longer than 1h: skipped 2\n"


def test_a_run_that_was_stopped_is_the_last() -> None:
    clock = ManualClock()
    pauses = Pauses(clock, stops_after=9)

    repeat(lambda: False, every_ms=HOUR_MS, clock=clock, pause=pauses)

    assert pauses.waits == []


class _Never:
    def wait(self, timeout_s: float) -> bool:
        return threading.Event().wait(timeout_s)


def test_a_run_that_fails_or_crashes_does_not_end_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for program in ("raise SystemExit(1)", "import os; os.kill(os.getpid(), 9)"):
        assert run_process([sys.executable, "-c", program], _Never())

    assert capsys.readouterr().err.splitlines() == [
        "penstock: the run ended with code 1; it is repeated at the next interval",
        "penstock: the run ended with code -9; it is repeated at the next interval",
    ]


def test_the_run_gets_the_arguments_of_the_command_except_the_interval() -> None:
    argv = ["slo", "--every", "1h", "--lake", "/lake", "--every=2h", "--json"]

    assert run_arguments(argv) == ["slo", "--lake", "/lake", "--json"]


# Prints each line as it comes, and passes SIGTERM on: the run ends first.
PROGRAM = """
import sys
from penstock.edge.cli.kit.stop_signal import StopSignal
from penstock.edge.cli.pipeline.repeating import repeat, run_process
from penstock.wiring.broker import own_clock

run = "from penstock.edge.cli.kit.stop_signal import terminated_as_interrupted as t\\n" + \\
    "import signal\\nwith t():\\n  try:\\n    print('run', flush=True)\\n    signal.pause()\\n" + \\
    "  except KeyboardInterrupt:\\n    print('released', flush=True)"
stop = StopSignal()
repeat(lambda: run_process([sys.executable, "-c", run], stop),
       every_ms=3_600_000, clock=own_clock(), pause=stop)
print("stopped", flush=True)
"""


@pytest.mark.slow
def test_sigterm_stops_the_run_at_work_which_releases_what_it_holds() -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "run\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "released\nstopped\n"

    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--every", "0s"), "--every must be a duration such as 1h"),
        (("--every", "soon"), "soon"),
        (("--every", "1h", "--wait"), "--every and --wait exclude each other"),
    ],
)
def test_an_invalid_interval_is_rejected(
    run: Run, tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    ran = run("pipeline", "run", *words, "--lake", tmp_path)

    assert (ran.code, expected in ran.err) == (2, True)


def test_an_unknown_job_is_reported_at_once_and_not_at_every_interval(
    run: Run, tmp_path: Path
) -> None:
    assert run("pipeline", "run", "rollup", "--every", "1h", "--lake", tmp_path).code == 1
