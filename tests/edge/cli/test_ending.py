"""A command that is told to end does so, whatever it does at that instant."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import random, signal
from penstock.edge.cli.kit.stop_signal import Ending

ending = Ending([signal.SIGALRM])
for _ in range(5_000):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.000_001, 0.000_030))
    ending.wait()
"""
OTHERS = """
import os, signal
from penstock.edge.cli.kit.stop_signal import Ending

ending = Ending()
signal.signal(signal.SIGUSR1, lambda *_: print("not meant", flush=True))
os.kill(os.getpid(), signal.SIGUSR1)
os.kill(os.getpid(), signal.SIGTERM)
ending.wait()
print("told")
"""


def _run(program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.decode()


def test_a_signal_is_heard_at_whatever_instant_it_comes() -> None:
    _run(PROGRAM)


def test_other_signals_are_not_meant_and_one_that_came_before_the_wait_is_heard() -> None:
    assert _run(OTHERS).split("\n")[-2:] == ["told", ""]
