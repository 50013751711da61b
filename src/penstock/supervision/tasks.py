"""Supervised tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from penstock.supervision.health import Health, NodePart
from penstock.supervision.restarts import Restarts


def start_supervised(
    name: str, run: Callable[[NodePart], Coroutine[Any, Any, None]], *, health: Health
) -> asyncio.Task[None]:
    """Awaits `run` until it returns or the task is cancelled; restarts it when it raises."""
    part = NodePart(name)

    async def supervise() -> None:
        health.add(part)
        restarts = Restarts(part)
        try:
            while True:
                restarts.began()
                try:
                    return await run(part)
                except Exception as error:
                    await asyncio.sleep(restarts.failed(error))
        finally:
            health.remove(part)

    return asyncio.get_running_loop().create_task(supervise(), name=name)
