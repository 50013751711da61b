"""Run blocking functions from code that may be on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def run_off_loop(do: Callable[[], T]) -> T:
    """Run it here, or on another thread if an event loop runs here; the loop is blocked."""
    if not _is_on_loop():
        return do()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, do).result()


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
