from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

from procrastinate import App, PsycopgConnector

from bench.jobs.board import ran

app = App(connector=PsycopgConnector(conninfo=os.environ.get("BENCH_URL", "")))


@app.task(queue="bench")
def work(row: int) -> None:
    ran(row)


@cache
def opened() -> App:
    return app.open()


def prepare() -> None:
    opened().schema_manager.apply_schema()


def enqueue(row: int) -> None:
    opened()
    work.defer(row=row)


def enqueue_all(rows: Iterable[int]) -> None:
    opened()
    work.batch_defer(*({"row": row} for row in rows))
