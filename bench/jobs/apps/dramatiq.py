from __future__ import annotations

import os
from collections.abc import Iterable

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.jobs.board import ran

dramatiq.set_broker(RedisBroker(url=os.environ.get("BENCH_URL", "redis://")))


@dramatiq.actor
def work(row: int) -> None:
    ran(row)


def prepare() -> None:
    pass


def enqueue(row: int) -> None:
    work.send(row)


def enqueue_all(rows: Iterable[int]) -> None:
    for row in rows:
        work.send(row)
