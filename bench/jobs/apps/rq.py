from __future__ import annotations

import os
from collections.abc import Iterable

from redis import Redis
from rq import Queue

from bench.jobs.board import ran

queue = Queue("bench", connection=Redis.from_url(os.environ.get("BENCH_URL", "redis://")))


def work(row: int) -> None:
    ran(row)


def prepare() -> None:
    pass


def enqueue(row: int) -> None:
    queue.enqueue(work, row, result_ttl=0)


def enqueue_all(rows: Iterable[int]) -> None:
    queue.enqueue_many([Queue.prepare_data(work, (row,), result_ttl=0) for row in rows])
