"""`python -m bench.flows.many [URL]`: whether many flows, and large ones, slow other jobs down.

It runs no-op jobs in a worker of its own, in process: beside nothing, beside 10,000 chains of ten
that wait in the same store, beside a batch of 100,000, and members of these; and prints the
processor time of a job and the time that it took.  Without a URL: SQLite in a temporary folder.
"""

from __future__ import annotations

import sys
import tempfile
import time

from penstock import Job, Penstock, chain

CHAINS, LINKS = 10_000, 10
NODES = 1_000
BATCH = 100_000
JOBS = 3_000
ROUNDS = 3


def main(url: str) -> None:
    app = Penstock(url)

    def declare(queue: str) -> Job[[], None]:
        @app.job(queue=queue, kind=queue)
        def nothing() -> None: ...

        return nothing

    plain, link, node, part = map(declare, ("plain", "chains", "graph", "batch"))

    def run(queue: str, count: int) -> tuple[float, float]:
        """Microseconds of processor time and of the clock for a job."""
        cpu, began = time.process_time(), time.perf_counter()
        app.run_worker(burst=True, queues=[queue])
        ended = time.perf_counter(), time.process_time()
        return (ended[1] - cpu) / count * 1e6, (ended[0] - began) / count * 1e6

    def show(what: str, *runs: tuple[float, float]) -> None:
        cpu, clock = min(run[0] for run in runs), min(run[1] for run in runs)
        print(f"{what:44} {cpu:6.0f} µs CPU {clock:6.0f} µs a job", flush=True)

    def ordinary(beside: str) -> None:
        runs = []
        for _ in range(ROUNDS):
            plain.enqueue_many([plain.args() for _ in range(JOBS)])
            runs.append(run("plain", JOBS))
        show(f"jobs beside {beside}", *runs)

    ordinary("nothing")
    for _ in range(CHAINS):
        chain(*(link.bind() for _ in range(LINKS))).enqueue()
    ordinary(f"{CHAINS:,} chains of {LINKS}")
    show(f"members of {CHAINS:,} chains", run("chains", CHAINS * LINKS))
    with app.flow("wide") as wide:
        first = wide.add(node)
        wide.add(node, after=[wide.add(node, after=[first]) for _ in range(NODES - 2)])
    show(f"members of a graph of {NODES:,}", run("graph", NODES))
    assert wide.status().state == "done"
    with app.batch("large") as large:
        began = time.perf_counter()
        large.add_many(part, [part.args() for _ in range(BATCH)])
        print(f"adding {BATCH:,} members to a batch: {time.perf_counter() - began:.1f} s")
    ordinary(f"a batch of {BATCH:,}")
    show(f"members of a batch of {BATCH:,}", run("batch", BATCH))
    assert large.status().done == BATCH
    app.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(f"sqlite:///{folder}/jobs.db")
