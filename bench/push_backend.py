"""`python -m bench.push_backend`: a backend that answers at once, in a process of its own.

It says its port; then, for each line on standard input, one line of JSON: `begin` forgets what it
saw, `until N` waits for the N-th request since then and reports when they came.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvloop

SENT_AT = "x-sent-at"  # of a delivery: when its send began, by the clock that all processes share
BUCKET = 0.1  # seconds
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_PATIENCE = 120.0


class Backend:
    """The backend as the benchmark uses it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{self._line()['port']}"

    def begin(self) -> None:
        self._tell("begin")
        self._line()

    def until(self, count: int) -> dict[str, Any]:
        """`first` and `last` arrival, `latencies`, and `most`: how many came in one bucket."""
        self._tell(f"until {count}")
        return self._line()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the backend ended before its time")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


@contextmanager
def backend() -> Iterator[Backend]:
    command = [sys.executable, "-m", "bench.push_backend"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Backend(process)
    finally:
        process.kill()
        process.wait()


class _Seen:
    def __init__(self) -> None:
        self.begin()
        self.changed = asyncio.Event()

    def begin(self) -> None:
        self.arrivals: list[float] = []
        self.latencies: list[float] = []

    def note(self, head: bytes) -> None:
        now = time.perf_counter()
        self.arrivals.append(now)
        sent_at = _header(head, SENT_AT)
        if sent_at:
            self.latencies.append(now - float(sent_at))
        self.changed.set()

    def summary(self) -> dict[str, Any]:
        first = self.arrivals[0]
        buckets: dict[int, int] = {}
        for at in self.arrivals:
            number = int((at - first) / BUCKET)
            buckets[number] = buckets.get(number, 0) + 1
        return {
            "first": first,
            "last": self.arrivals[-1],
            "latencies": self.latencies,
            "most": max(buckets.values()),
        }


class _Connection(asyncio.Protocol):
    def __init__(self, seen: _Seen) -> None:
        self._seen = seen
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            size = end + 4 + int(_header(head, "content-length") or 0)
            if len(self._buffer) < size:
                return
            self._buffer = self._buffer[size:]
            self._seen.note(head)
            self._transport.write(_ANSWER)


def _header(head: bytes, name: str) -> str:
    _, _, rest = head.partition(f"\r\n{name}:".encode())
    return rest.partition(b"\r\n")[0].decode().strip()


async def _serve() -> None:
    seen, loop = _Seen(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(seen), "127.0.0.1", 0, backlog=4096)
    _say({"port": server.sockets[0].getsockname()[1]})
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        match line.split():
            case ["begin"]:
                seen.begin()
                _say({})
            case ["until", count]:
                _say(await _until(seen, int(count)))


async def _until(seen: _Seen, count: int) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_PATIENCE):
            while len(seen.arrivals) < count:
                seen.changed.clear()
                await seen.changed.wait()
    except TimeoutError:
        return {"error": f"{len(seen.arrivals)} of {count} deliveries arrived"}
    return seen.summary()


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
