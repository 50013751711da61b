"""A command stops on a signal, whatever it is doing at that instant."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import random, signal
from penstock.edge.cli.kit.stop_signal import StopSignal

stop_signal = StopSignal([signal.SIGALRM])
for _ in range(5_000):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.000_001, 0.000_030))
    stop_signal.wait()
"""
OTHERS = """
import os, signal
from penstock.edge.cli.kit.stop_signal import StopSignal

stop_signal = StopSignal()
signal.signal(signal.SIGUSR1, lambda *_: print("ignored", flush=True))
os.kill(os.getpid(), signal.SIGUSR1)
os.kill(os.getpid(), signal.SIGTERM)
stop_signal.wait()
print("stopped")
"""


def _run(program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.decode()


def test_a_signal_is_noticed_at_any_instant() -> None:
    _run(PROGRAM)


def test_other_signals_are_ignored_and_an_early_stop_signal_is_noticed() -> None:
    assert _run(OTHERS).split("\n")[-2:] == ["stopped", ""]
