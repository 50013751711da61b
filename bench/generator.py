"""The load generator: one measurement of one load against one peer, in a process of its own."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.apart import ApartError, call_apart, serve
from bench.clients import client_of
from bench.clients.base import Client, Connection, Endpoint
from bench.cpu import cpu_seconds
from bench.driver import Loop, Outcome, Run
from bench.loads import Load
from bench.loops import LOOPS, Handler, PacedSender, SendLoop

WARM_UP = 0.3
# What was under way when time was up ends within this, before its connection is cut.
SETTLE = 0.2
PATIENCE = 120.0
MAX_FILLED = 400_000
FILLERS = 16


@dataclass(frozen=True)
class Job:
    client: str
    endpoint: Endpoint
    queue: str
    load: Load
    connections: int
    seconds: float
    server_pids: Sequence[int] = ()


def run_apart(job: Job) -> Outcome:
    """Runs `job` in a fresh process. A generator that breaks is an invalid run, not a crash."""
    within = PATIENCE + 4 * job.seconds
    try:
        return Outcome(
            **call_apart("bench.generator", "measure", dataclasses.asdict(job), within=within)
        )
    except ApartError as error:
        return Outcome.invalid(str(error))


async def measure(load: Mapping[str, Any], **fields: Any) -> Mapping[str, Any]:
    outcome = await perform(Job(load=Load(**load), **fields))
    return dataclasses.asdict(outcome)


async def perform(job: Job) -> Outcome:
    client = client_of(job.client, job.endpoint, job.queue)
    await client.create_queue()
    if job.load.kind == "consume":
        filled = await _fill(client, job)
        if filled.error:
            return filled
    outcome = await _measure(client, job)
    if not outcome.error:
        await client.drop_queue()
    return outcome


async def _fill(client: Client, job: Job) -> Outcome:
    """Makes a backlog for as long as it will be consumed; in big batches, so that it is enough."""
    run = Run(seconds=job.seconds + WARM_UP, warm_up=0.0, most=MAX_FILLED)
    connections = await connect(client, min(FILLERS, job.connections), run, client.fill_batch)
    outcome = await run.measure([SendLoop(c, run, client.fill_batch) for c in connections])
    await close(connections)
    return outcome


async def _measure(client: Client, job: Job) -> Outcome:
    run = Run(
        seconds=job.seconds,
        warm_up=min(WARM_UP, job.seconds / 2),
        server_cpu=partial(cpu_seconds, *job.server_pids),
    )
    waits = job.load.kind == "handoff"
    count = job.load.connections or job.connections
    connections = await connect(client, count, run, job.load.batch, waits=waits)
    gc.collect()
    gc.disable()
    outcome = await run.measure(_loops(connections, run, job.load))
    gc.enable()
    await close(connections)
    return outcome


def _loops(connections: Sequence[Connection], run: Run, load: Load) -> Sequence[Loop]:
    if load.kind != "handoff":
        return [LOOPS[load.kind](c, run, load.batch) for c in connections]
    assert load.pace is not None
    sender = PacedSender(connections[0], run, pace=load.pace)
    return [*(Handler(c, run, sender) for c in connections[1:]), sender]


async def connect(
    client: Client, count: int, run: Run, batch: int, *, waits: bool = False
) -> list[Connection]:
    return [await client.connect(run.fail, batch, waits=waits) for _ in range(count)]


async def close(connections: list[Connection]) -> None:
    await asyncio.sleep(SETTLE)
    for connection in connections:
        connection.close()


if __name__ == "__main__":
    serve({"measure": measure})
