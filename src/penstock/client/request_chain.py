"""Several questions in a row, written once for blocking callers and for event loops.

A flow is a generator: it yields what it wants asked, or how long to pause, and is sent the answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any, TypeVar

import msgspec

from penstock.client.backend import Backing
from penstock.client.local.backend import Embedded
from penstock.client.request_kinds import Ask, ask, look

T = TypeVar("T")


class Pause(msgspec.Struct, frozen=True):
    seconds: float


class Read(msgspec.Struct, frozen=True):
    """A question that changes nothing."""

    what: Ask[Any]


Step = Read | Ask[Any] | Pause
Flow = Generator[Step, Any, T]


def run(backing: Backing, flow: Flow[T]) -> T:
    never = threading.Event()
    answer: Any = None
    while True:
        try:
            step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        match step:
            case Pause(seconds):
                answer = never.wait(seconds)
            case Read(what):
                answer = look(backing, what)
            case _:
                answer = ask(backing, step)


async def run_async(backing: Backing, flow: Flow[T]) -> T:
    answer: Any = None
    while True:
        try:
            step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = await _step_async(backing, step)


async def _step_async(backing: Backing, step: Step) -> Any:
    match step:
        case Pause(seconds):
            return await asyncio.sleep(seconds)
        case Read(what) if isinstance(backing, Embedded):
            broker = backing.broker
            return await broker.store.read(what.in_store(broker))
        case Read(what):
            return await asyncio.to_thread(look, backing, what)
    if isinstance(backing, Embedded):
        return await backing.broker.store.write(step.in_store(backing.broker))
    return await asyncio.to_thread(ask, backing, step)
