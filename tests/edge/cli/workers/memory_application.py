"""An application whose jobs record their process, and may allocate memory."""

from __future__ import annotations

import os

from penstock import Penstock
from tests.edge.cli.workers.application import note

app = Penstock("sqlite:///data/never-opened.db")  # tests pass the URL
_kept: list[bytes] = []


@app.job(queue="plant")
def work(file: str, keep_mib: int = 0) -> None:
    _run("work", file, keep_mib)


@app.job(queue="plant", timeout="10m")
def work_apart(file: str, keep_mib: int = 0) -> None:
    _run("apart", file, keep_mib)


def _run(name: str, file: str, keep_mib: int) -> None:
    _kept.append(b"\1" * (keep_mib * 1024**2))
    note(file, f"{name} {os.getpid()}")
