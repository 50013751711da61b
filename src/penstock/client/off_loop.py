"""Waiting on behalf of those who call blocking functions on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def aside(do: Callable[[], T]) -> T:
    """Do it here, or on a thread beside if an event loop runs here: that one stands still."""
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
