"""The application that the workers of the tests' fleets run."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from penstock import Penstock

app = Penstock("sqlite:///data/never-opened.db")  # the tests say which
app.queue("mail", lease="30s")


@app.job(queue="mail")
def brief(file: str, text: str) -> None:
    """Takes a moment."""
    threading.Event().wait(0.1)
    _note(file, text)


@app.job(queue="mail")
def wait_for(file: str, gate: str) -> None:
    """Takes until the gate is there."""
    _note(file, f"begin {os.getpid()}")
    while not Path(gate).exists():
        threading.Event().wait(0.01)
    _note(file, "end")


def _note(file: str, text: str) -> None:
    """One write: lines of several processes do not mix."""
    with Path(file).open("a") as log:
        log.write(f"{text}\n")
