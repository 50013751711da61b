"""How a client reaches a broker, over HTTP or in its own process, and sequences of requests.

A flow is a generator, written once for blocking and for async callers: it yields requests and
pauses, and receives the answers or errors.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from penstock.api.operation import Operation, QueryRecord
from penstock.ports.unit_of_work import await_steps, run_steps

Answer = TypeVar("Answer")
T = TypeVar("T")
Body = msgspec.Struct | Mapping[str, Any]


class Ask(msgspec.Struct, frozen=True):
    """One request to the broker."""

    operation: Operation[Any]
    path: Mapping[str, str] = {}
    body: Body | None = None
    query: QueryRecord | None = None
    only_new: bool = False  # a PUT must not change what exists


class Channel(ABC):
    """Safe to share between threads."""

    def request(
        self,
        operation: Operation[Answer],
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        tx: object = None,
        **path: str,
    ) -> Answer:
        """Return the broker's answer; raises its error, or Unreachable.

        With `only_new` a PUT must not change what exists.  `tx` is the caller's own transaction, in
        which everything is read and written.
        """
        answer: Answer = self.ask(Ask(operation, path, body, query, only_new), tx)
        return answer

    async def request_async(
        self,
        operation: Operation[Answer],
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        tx: object = None,
        **path: str,
    ) -> Answer:
        """The same without blocking the event loop."""
        answer: Answer = await self.ask_async(Ask(operation, path, body, query, only_new), tx)
        return answer

    @abstractmethod
    def ask(self, ask: Ask, tx: object = None) -> Any: ...

    async def ask_async(self, ask: Ask, tx: object = None) -> Any:
        return await asyncio.to_thread(self.ask, ask, tx)


class Pause(msgspec.Struct, frozen=True):
    seconds: float


Flow = Generator[Ask | Pause, Any, T]


def run(channel: Channel, flow: Flow[T]) -> T:
    answer: T = run_steps(cast(Any, flow), cast(Any, partial(_take_step, channel)))
    return answer


async def run_async(channel: Channel, flow: Flow[T]) -> T:
    answer: T = await await_steps(cast(Any, flow), cast(Any, partial(_take_step_async, channel)))
    return answer


def _take_step(channel: Channel, step: Ask | Pause) -> Any:
    if isinstance(step, Pause):
        return threading.Event().wait(step.seconds)
    return channel.ask(step)


async def _take_step_async(channel: Channel, step: Ask | Pause) -> Any:
    if isinstance(step, Pause):
        return await asyncio.sleep(step.seconds)
    return await channel.ask_async(step)
