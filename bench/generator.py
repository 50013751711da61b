"""The load generator: `python -m bench.generator JOB` runs one measurement in a process of its own.

The job is JSON on the command line, the outcome JSON on standard output. A process per measurement
keeps the generator's garbage, caches and event loop out of the next figure.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import subprocess
import sys
from dataclasses import dataclass

from bench.clients import client_of
from bench.clients.base import Client, Connection, Endpoint
from bench.driver import LOOPS, Outcome, Run, SendLoop
from bench.loads import Load

WARM_UP = 0.3
CLOSE_AFTER = 120.0
MOST_FILLED = 400_000


@dataclass(frozen=True)
class Job:
    client: str
    endpoint: Endpoint
    queue: str
    load: Load
    connections: int
    seconds: float


def run_apart(job: Job) -> Outcome:
    """Runs `job` in a fresh process. A generator that breaks is an invalid run, not a crash."""
    command = [sys.executable, "-m", "bench.generator", json.dumps(dataclasses.asdict(job))]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CLOSE_AFTER + 4 * job.seconds
        )
    except subprocess.TimeoutExpired:
        return Outcome(0, 0.0, 0.0, error="the load generator hung")
    if done.returncode != 0:
        return Outcome(0, 0.0, 0.0, error=done.stderr.strip()[-400:] or "the generator broke")
    return Outcome(**json.loads(done.stdout))


async def perform(job: Job) -> Outcome:
    client = client_of(job.client, job.endpoint, job.queue)
    await client.create_queue()
    if job.load.kind == "consume":
        filled = await fill(client, job)
        if filled.error:
            return filled
    outcome = await _measure(client, job)
    if not outcome.error:
        await client.drop_queue()
    return outcome


async def fill(client: Client, job: Job) -> Outcome:
    """Makes a backlog in as long as it will be consumed; big batches, so that it is enough."""
    run = Run(seconds=job.seconds + WARM_UP, warm_up=0.0, most=MOST_FILLED)
    connections = await _connect(client, min(16, job.connections), run, client.fill_batch)
    outcome = await run.measure([SendLoop(c, run, client.fill_batch) for c in connections])
    # What is on its way when time is up must be in the queue before it is consumed or dropped.
    await asyncio.sleep(0.2)
    _close(connections)
    return outcome


async def _measure(client: Client, job: Job) -> Outcome:
    run = Run(seconds=job.seconds, warm_up=min(WARM_UP, job.seconds / 2))
    connections = await _connect(client, job.connections, run, job.load.batch)
    loop_type = LOOPS[job.load.kind]
    gc.collect()
    gc.disable()
    outcome = await run.measure([loop_type(c, run, job.load.batch) for c in connections])
    gc.enable()
    await asyncio.sleep(0.2)
    _close(connections)
    return outcome


async def _connect(client: Client, wanted: int, run: Run, batch: int) -> list[Connection]:
    count = min(wanted, client.most_connections)
    return [await client.connect(run.fail, batch) for _ in range(count)]


def _close(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()


def main() -> None:
    fields = json.loads(sys.argv[1])
    job = Job(**{**fields, "load": Load(**fields["load"])})
    import uvloop

    outcome = uvloop.run(perform(job))
    print(json.dumps(dataclasses.asdict(outcome)))


if __name__ == "__main__":
    main()
