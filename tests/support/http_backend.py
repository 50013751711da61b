"""A real HTTP server that a test controls: it answers, fails, hangs, disconnects or waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

WAIT_S = 60.0


@dataclass(frozen=True)
class Seen:
    """A request as it was received."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    payload: bytes
    connection: int

    def header(self, name: str) -> str | None:
        return next((text for given, text in self.headers if given.lower() == name), None)


@dataclass(frozen=True)
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    claims_more: int = 0  # bytes that it announces but never sends


class HangUp:
    """Close the connection without an answer."""


class Hang:
    """Accept the request and never answer."""


class Begin:
    """Begin an answer and close the connection in the middle of its head."""


Behaviour = Answer | HangUp | Hang | Begin


class HttpBackend:
    """`behave` decides what happens to a request; after `hold()` all wait for `release()`."""

    def __init__(self) -> None:
        self.behave: Callable[[Seen], Behaviour] = lambda seen: Answer()
        self.seen: list[Seen] = []
        self.connections = 0
        self.most_at_once = 0
        self._at_once = 0
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="http-backend", daemon=True)

    def answer(self, status: int = 200, **headers: str) -> None:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.behave = lambda seen: Answer(status, named)

    def hold(self) -> None:
        self._loop.call_soon_threadsafe(self._gate.clear)
        self._in_step()

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._gate.set)

    def wait_for(self, count: int) -> list[Seen]:
        """Wait until this many requests have arrived since the start."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.seen) >= count, WAIT_S)
            assert arrived, f"{len(self.seen)} requests arrived, not {count}"
            return list(self.seen)

    @property
    def targets(self) -> list[str]:
        return [seen.target for seen in self.seen]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(WAIT_S)
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop; calling it twice is harmless."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(WAIT_S)

    def _in_step(self) -> None:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result(WAIT_S)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._gate = asyncio.Event()
        self._gate.set()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._talk(reader, writer, self.connections))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        try:
            while (seen := await _next(reader, number)) is not None:
                if not await self._serve_one(seen, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _serve_one(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        with self._changed:
            self.seen.append(seen)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self._changed.notify_all()
        behaviour = self.behave(seen)
        try:
            await self._gate.wait()
            if isinstance(behaviour, Hang):
                await asyncio.Event().wait()
        finally:
            self._at_once -= 1
        if isinstance(behaviour, Begin):
            writer.write(b"HTTP/1.1 200 Said\r\nContent-Le")
            await writer.drain()
        if not isinstance(behaviour, Answer):
            return False
        writer.write(_bytes(behaviour))
        await writer.drain()
        if behaviour.claims_more:
            await asyncio.Event().wait()
        return True


async def _next(reader: asyncio.StreamReader, number: int) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = tuple((name, text.strip()) for name, _, text in (one.partition(":") for one in lines))
    seen = Seen(method, target, headers, b"", number)
    length = int(seen.header("content-length") or 0)
    return Seen(method, target, headers, await reader.readexactly(length), number)


def _bytes(answer: Answer) -> bytes:
    headers = {"Content-Length": str(len(answer.body) + answer.claims_more), **answer.headers}
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return f"HTTP/1.1 {answer.status} Said\r\n{lines}\r\n".encode() + answer.body
