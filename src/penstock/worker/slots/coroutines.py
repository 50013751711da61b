"""Run event loops so that no job can end them.

asyncio raises the SystemExit or KeyboardInterrupt of any task or callback out of the loop's run
method, after it has stored the exception in its task.  The loop itself is intact: once it runs
again, the exception reaches the code that awaits the task, and fails that job alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

_log = logging.getLogger("penstock.worker")

T = TypeVar("T")


def run_until(loop: asyncio.AbstractEventLoop, is_over: Callable[[], bool]) -> None:
    """Run a loop until it is stopped and `is_over`; raises what breaks the loop itself."""
    while not is_over():
        try:
            loop.run_forever()  # returns early if a job calls loop.stop()
        except (SystemExit, KeyboardInterrupt) as error:
            _log.warning("%s in a task of the event loop", type(error).__name__, exc_info=error)


def run_here(awaitable: Awaitable[T]) -> T:
    """Await it on a new loop in this thread.  Ctrl-C raises KeyboardInterrupt."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(result_of(awaitable))
        while not task.done():
            try:
                loop.run_until_complete(task)
            except SystemExit:
                pass
            except RuntimeError:  # "Event loop stopped before Future completed."
                if loop.is_closed():
                    raise
        return task.result()


async def result_of(awaitable: Awaitable[T]) -> T:
    return await awaitable
