"""An application with hooks at the start and exit of each worker process."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
from pathlib import Path

from penstock import Penstock, current

_log = logging.getLogger("shop.mail")
_seen = Path(os.environ.get("HOOKED_SEEN", os.devnull))
_role = sys.argv[1] if len(sys.argv) > 1 else "test"  # of a worker's processes: work, sandbox
_loops: list[asyncio.AbstractEventLoop] = []

app = Penstock("sqlite:///data/never-opened.db")  # tests pass the URL


def note(text: str) -> None:
    with _seen.open("a") as file:
        file.write(f"{_role} {text}\n")


atexit.register(note, "atexit")


@app.on_worker_start
def start() -> None:
    broken = os.environ.get("HOOKED_BROKEN")
    if broken and not Path(broken).exists():  # once
        Path(broken).touch()
        raise ConnectionError("no database")
    note("start")


@app.on_worker_start
async def make_a_pool() -> None:
    _loops.append(asyncio.get_running_loop())


@app.on_worker_stop
async def close_the_pool() -> None:
    assert _loops == [asyncio.get_running_loop()]
    note("stop")


@app.job(queue="shop")
async def use_the_pool() -> None:
    assert _loops == [asyncio.get_running_loop()]
    _log.warning("a line of %s", current().kind)


@app.job(queue="shop", timeout="60s")
def log_in_a_sandbox() -> None:
    assert _role == "sandbox"
    _log.warning("a line of %s", current().kind)


@app.job(queue="shop")
def log_in_a_thread() -> None:
    _log.warning("a line of %s", current().kind)
