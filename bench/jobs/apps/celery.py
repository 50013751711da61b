from __future__ import annotations

import os
from collections.abc import Iterable

from celery import Celery

from bench.jobs.board import ran

app = Celery("bench", broker=os.environ.get("BENCH_URL"))
app.conf.update(
    task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True
)


@app.task
def work(row: int) -> None:
    ran(row)


def prepare() -> None:
    pass


def enqueue(row: int) -> None:
    work.delay(row)


def enqueue_all(rows: Iterable[int]) -> None:
    for row in rows:
        work.delay(row)
