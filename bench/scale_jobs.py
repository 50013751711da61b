"""What the scale loads ask of Penstock, each in its own process: fill, make queues, consume."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bench.apart import serve
from bench.clients.base import Connection, Done, Endpoint, Receipts
from bench.clients.http import HttpConnection, open_http, request_bytes
from bench.clients.penstock import PenstockClient, batch_request, send_request
from bench.driver import Outcome, Run
from bench.generator import WARM_UP, close
from bench.loops import ConsumeLoop

FILLERS = 16
# Several, because one that waits for its answers could not keep up with the consumers.
FEEDERS = 4
FEED = 100
MAX_EMPTY = 0.02


async def fill(
    endpoint: Endpoint, queue: str, count: int, batch: int, delay_ms: int = 0
) -> Mapping[str, Any]:
    """Exactly `count` messages; a batch that is refused ends the job with the server's message."""
    await PenstockClient(endpoint, queue).create_queue()
    sizes = [batch] * (count // batch) + ([count % batch] if count % batch else [])
    await _all(endpoint, [(batch_request(queue, size, delay_ms), b"200") for size in sizes])
    return {"sent": count}


async def make_queues(endpoint: Endpoint, count: int) -> Mapping[str, Any]:
    """Queues that hold one message each: an empty one could be too easy to skip."""
    names = [f"side-{number}" for number in range(count)]
    await _all(
        endpoint, [(request_bytes("PUT", f"/v1/queues/{name}", b"{}"), b"201") for name in names]
    )
    await _all(endpoint, [(send_request(name), b"201") for name in names])
    return {"made": count}


async def consume(
    endpoint: Endpoint, queue: str, batch: int, connections: int, seconds: float
) -> Mapping[str, Any]:
    """Claims and completes while a feeder keeps the backlog as deep as it is."""
    client = PenstockClient(endpoint, queue)
    run = Run(seconds=seconds, warm_up=min(WARM_UP, seconds / 2))
    feeding = [await client.connect(run.fail, FEED) for _ in range(FEEDERS)]
    feeder = Feeder(feeding)
    opened = [await client.connect(run.fail, batch) for _ in range(connections)]
    loops = [FedLoop(one, run, batch, feeder) for one in opened]
    outcome = await run.measure(loops)
    await close([*opened, *feeding])
    asked, empty = sum(loop.asked for loop in loops), sum(loop.empty for loop in loops)
    if not outcome.error and empty > MAX_EMPTY * asked:
        outcome = Outcome.invalid(f"{empty} of {asked} claims found nothing: the feeder was late")
    return dataclasses.asdict(outcome)


class Feeder:
    """Sends as many as were consumed, in hundreds: little work beside the claims themselves."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._idle = list(connections)
        self._owed = 0

    def ate(self, count: int) -> None:
        self._owed += count
        if self._owed >= FEED and self._idle:
            self._owed -= FEED
            connection = self._idle.pop()
            connection.send(FEED, lambda: self._sent(connection))

    def _sent(self, connection: Connection) -> None:
        self._idle.append(connection)
        self.ate(0)


class FedLoop(ConsumeLoop):
    def __init__(self, connection: Connection, run: Run, batch: int, feeder: Feeder) -> None:
        super().__init__(connection, run, batch)
        self._feeder = feeder
        self.asked = self.empty = 0

    def _received(self, receipts: Receipts) -> None:
        self.asked += 1
        if receipts:
            super()._received(receipts)
        else:
            self.empty += 1
            self.begin()

    def _acked(self) -> None:
        self._feeder.ate(self._taken)
        super()._acked()


async def _all(endpoint: Endpoint, requests: list[tuple[bytes, bytes]]) -> None:
    """Puts all requests, given with their expected status, through a few connections."""
    waiting = iter(requests)
    await asyncio.gather(*(_worker(endpoint, waiting) for _ in range(FILLERS)))


async def _worker(endpoint: Endpoint, waiting: Any) -> None:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    connection = await open_http(
        str(endpoint["host"]), int(endpoint["port"]), lambda text: _refuse(done, text)
    )
    _next(connection, waiting, lambda: done.set_result(None))
    try:
        await done
    finally:
        connection.close()


def _next(connection: HttpConnection, waiting: Any, then: Done) -> None:
    raw, status = next(waiting, (None, b""))
    if raw is None:
        then()
    else:
        connection.request(raw, (status,), lambda _: _next(connection, waiting, then))


def _refuse(done: asyncio.Future[None], text: str) -> None:
    if not done.done():
        done.set_exception(RuntimeError(text))


if __name__ == "__main__":
    serve({"fill": fill, "make_queues": make_queues, "consume": consume})
