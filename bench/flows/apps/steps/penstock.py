"""A chain as one job of so many durable steps, which DBOS calls a workflow."""

from __future__ import annotations

import os

from bench.jobs.board import ran
from penstock import Penstock, step_sync

app = Penstock(os.environ.get("BENCH_URL", "sqlite:///bench.db"))


def add(value: int, row: int) -> int:
    ran(row)
    return value + 1


@app.job(queue="bench", result="keep")
def run_chain(first: int, size: int) -> int:
    value = 0
    for n in range(size):
        value = step_sync("add", add, value, first + n)
    return value


def prepare() -> None:
    app.migrate()


def enqueue_chain(first: int, size: int) -> None:
    run_chain.enqueue(first, size)
