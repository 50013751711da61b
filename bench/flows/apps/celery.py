from __future__ import annotations

import os

from celery import Celery, chain, chord

from bench.jobs.board import ran

_URL = os.environ.get("BENCH_URL")
app = Celery("bench", broker=_URL, backend=_URL)
app.conf.update(task_acks_late=True, broker_connection_retry_on_startup=True)


@app.task
def step(value: int, row: int) -> int:
    ran(row)
    return value + 1


@app.task
def member(row: int) -> int:
    ran(row)
    return row


@app.task
def total(values: list[int], row: int) -> int:
    ran(row)
    return sum(values)


def prepare() -> None:
    pass


def enqueue_chain(first: int, size: int) -> None:
    chain(step.s(0, first), *(step.s(first + n) for n in range(1, size))).delay()


def enqueue_group(first: int, size: int) -> None:
    chord((member.s(first + n) for n in range(size)), total.s(first + size)).delay()
