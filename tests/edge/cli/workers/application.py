"""The application of the worker tests.  Its jobs write to files that tests read."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from penstock import (
    Batch,
    Cancel,
    Item,
    JobCancelled,
    Penstock,
    Retry,
    current,
    step,
    step_sync,
    wait_event,
    wait_event_sync,
)

app = Penstock("sqlite:///data/never-opened.db")  # tests pass the URL
app.queue("shop", lease="30s")


def note(file: str, text: str) -> None:
    """A single write, so that lines of several processes do not mix."""
    with Path(file).open("a") as log:
        log.write(f"{text}\n")


@app.job(queue="shop")
def write(file: str, text: str) -> None:
    note(file, text)


@app.job(queue="shop")
async def write_async(file: str, text: str) -> None:
    await asyncio.sleep(0)
    note(file, text)


@app.job(queue="shop", timeout="1m")
def fulfil(file: str, signal: str) -> None:
    """Run in a process of its own, which crashes behind its first step."""
    step_sync("charge", note, file, "charge")
    if current().attempts == 1:
        os.kill(os.getpid(), 9)
    note(file, f"approved by {wait_event_sync(signal, timeout='1h')}")


@app.job(queue="shop")
async def fulfil_async(file: str, signal: str) -> None:
    await step("charge", note, file, "charge")
    note(file, f"approved by {await wait_event(signal, timeout='1h')}")


@app.job(queue="shop")
def wait_for(file: str, gate: str) -> None:
    """Run until the gate file exists."""
    note(file, f"begin {os.getpid()}")
    while not Path(gate).exists():
        threading.Event().wait(0.01)
    note(file, f"end stopping={current().is_stopping}")


@app.job(queue="shop", timeout="20s")
def stays_the_first_time(file: str) -> None:
    note(file, f"begin {os.getpid()}")
    if current().attempts == 1:
        threading.Event().wait()


@app.job(queue="shop", timeout="2s")
def never_yields(file: str) -> None:
    note(file, "begin")
    while True:
        pass


@app.job(queue="shop", timeout="1h")
def runs_for_ever(file: str) -> None:
    note(file, f"begin {os.getpid()}")
    try:
        while True:
            pass
    except JobCancelled:
        note(file, "cleaned up")
        raise


@app.job(queue="shop", timeout="2s")
async def waits_for_ever(file: str) -> None:
    note(file, "begin")
    try:
        await asyncio.sleep(3600)
    finally:
        note(file, "cleaned up")


@app.job(queue="shop", timeout="2s")
async def blocks_the_loop(file: str) -> None:
    note(file, "begin")
    threading.Event().wait()


@app.job(queue="shop", timeout="2s")
def starts_a_program(file: str) -> None:
    program = subprocess.Popen(["sleep", "600"])
    note(file, f"begin {program.pid}")
    program.wait()


@app.job(queue="shop", attempts=2)
async def breaks_the_loop(file: str) -> None:
    note(file, "begin")
    loop: Any = asyncio.get_running_loop()
    loop._selector.close()
    await asyncio.sleep(3600)


@app.job(queue="shop", attempts=20)
def crash(file: str, how: str) -> None:
    note(file, "begin")
    if how == "segfault":
        ctypes.string_at(0)
    os._exit(7)


@app.job(queue="shop", timeout="60s", batch=Batch(max=3, wait="20s"))
def write_together(items: list[Item[tuple[str, str]]]) -> None:
    """In one sandbox; the second job is cancelled, the third fails once."""
    file = items[0].value[0]
    note(file, " ".join(text for _, text in (item.value for item in items)))
    for item in items:
        if item.value[1] == "cancelled":
            item.settle(Cancel("not wanted"))
        elif item.value[1] == "retried":
            item.progress(0.5)
            item.settle(Retry("1h"))


@app.job(queue="shop", attempts=20, batch=Batch(max=3, wait="20s"))
def crash_together(texts: list[tuple[str, str]]) -> None:
    note(texts[0][0], " ".join(text for _, text in texts))
    if any(text == "bad" for _, text in texts):
        os._exit(7)


@app.job(queue="shop", timeout="60s", logs="keep")
def log_in_a_sandbox(text: str) -> None:
    print(text)


@app.job(queue="shop", logs="keep")
def log_in_a_thread(text: str) -> None:
    logging.getLogger("shop").warning(text)
