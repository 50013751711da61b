from __future__ import annotations

import os
from collections.abc import Iterable

from bench.jobs.board import ran
from penstock import Penstock

app = Penstock(os.environ.get("BENCH_URL", "sqlite:///bench.db"))


@app.job(queue="bench")
def work(row: int) -> None:
    ran(row)


def prepare() -> None:
    app.migrate()


def enqueue(row: int) -> None:
    work.enqueue(row)


def enqueue_all(rows: Iterable[int]) -> None:
    work.enqueue_many(work.args(row) for row in rows)
