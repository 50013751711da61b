"""One process of `bench.side_by_side`: opens the shared file, waits for the word, works, counts.

It says `ready` when its broker is open and one message went through, starts at the next line it
reads, and prints what it has done as JSON.  Errors are counted by their text: there must be none.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import uvloop

from bench.payload import BODY
from penstock.domain.errors import PenstockError, QueueExists
from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.store import Acted, Sent
from penstock.settings import Settings
from penstock.wiring.broker import Broker, open_broker

QUEUE = "side-by-side"
_TEXT = BODY.decode()

Step: TypeAlias = Callable[[Broker, Queue], Awaitable[None]]


async def send(broker: Broker, queue: Queue) -> None:
    messages = broker.messages
    [sent] = await messages.send([messages.draft(queue, Draft(body=_TEXT))])
    if not isinstance(sent, Sent):
        raise sent


async def cycle(broker: Broker, queue: Queue) -> None:
    """Each claimer has sent one before, so there is always one to claim."""
    messages = broker.messages
    await send(broker, queue)
    claimed = await messages.claim(queue, limit=1)
    [(message, _)] = claimed.messages
    [acted] = await messages.act([messages.plan(Lease.of(message), Verb.COMPLETE)])
    if not isinstance(acted, Acted):
        raise acted


STEPS: dict[str, Step] = {"send": send, "cycle": cycle}


async def work(broker: Broker, queue: Queue, step: Step, *, clients: int, seconds: float) -> str:
    errors: Counter[str] = Counter()
    began = time.perf_counter()
    until = began + seconds
    done, longest = 0, 0.0

    async def one_client() -> None:
        nonlocal done, longest
        while (started := time.perf_counter()) < until:
            try:
                await step(broker, queue)
            except (PenstockError, ValueError) as error:
                errors[f"{type(error).__name__}: {error}"] += 1
                await asyncio.sleep(0.01)
            else:
                done += 1
                longest = max(longest, time.perf_counter() - started)

    await asyncio.gather(*(one_client() for _ in range(clients)))
    took = time.perf_counter() - began
    return json.dumps({"done": done, "took": took, "longest": longest, "errors": errors})


def make_queue(broker: Broker) -> Queue:
    try:
        return broker.queues.put(QUEUE, QueueSettings()).result().view.queue
    except QueueExists:
        return broker.directory.load(QUEUE).result()


def main(folder: str, load: str, clients: str, seconds: str) -> None:
    broker = open_broker(Settings(data=str(Path(folder))))
    try:
        queue = make_queue(broker)
        uvloop.run(STEPS[load](broker, queue))  # type: ignore[arg-type]
        print("ready", flush=True)
        sys.stdin.readline()
        done = uvloop.run(
            work(broker, queue, STEPS[load], clients=int(clients), seconds=float(seconds))
        )
        print(done, flush=True)
    finally:
        broker.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
