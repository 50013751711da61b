from __future__ import annotations

import os
from collections.abc import Iterable

from huey import SqliteHuey

from bench.jobs.board import ran

huey = SqliteHuey(
    "bench", filename=os.environ.get("BENCH_URL", "huey.db"), fsync=True, results=False
)


@huey.task()
def work(row: int) -> None:
    ran(row)


def prepare() -> None:
    pass


def enqueue(row: int) -> None:
    work(row)


def enqueue_all(rows: Iterable[int]) -> None:
    for row in rows:
        work(row)
