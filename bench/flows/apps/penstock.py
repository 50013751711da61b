from __future__ import annotations

import os

from bench.jobs.board import ran
from penstock import Penstock, chain, group, previous

app = Penstock(os.environ.get("BENCH_URL", "sqlite:///bench.db"))


@app.job(queue="bench")
def step(value: int, row: int) -> int:
    ran(row)
    return value + 1


@app.job(queue="bench")
def member(row: int) -> int:
    ran(row)
    return row


@app.job(queue="bench")
def total(values: list[int], row: int) -> int:
    ran(row)
    return sum(values)


def prepare() -> None:
    app.migrate()


def enqueue_chain(first: int, size: int) -> None:
    later = (step.bind(previous, first + n) for n in range(1, size))
    chain(step.bind(0, first), *later).enqueue()


def enqueue_group(first: int, size: int) -> None:
    members = group(*(member.bind(first + n) for n in range(size)))
    members.then(total.bind(previous, first + size)).enqueue()
