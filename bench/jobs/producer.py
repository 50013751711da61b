"""`python -m bench.jobs.producer APP WHAT …`: enqueues, in a process of its own."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path

from bench.jobs.board import VARIABLE, Board


def main(arguments: list[str]) -> None:
    name, what, *numbers = arguments
    app = importlib.import_module(name)
    match what:
        case "prepare":
            app.prepare()
        case "fill":
            [count] = map(int, numbers)
            app.enqueue_all(range(count))
        case "pace":
            first, count, rate = map(int, numbers)
            pace(app.enqueue, first, count, rate)
        case "flows":
            call, *more = numbers
            count, size, jobs = map(int, more)
            for number in range(count):
                getattr(app, call)(number * jobs, size)
        case "pace_flows":
            first, count, size, rate = map(int, numbers)
            pace_chains(app.enqueue_chain, first, count, size, rate)


def pace(enqueue: object, first: int, count: int, rate: int) -> None:
    """At an even rate; a framework that is too slow falls behind, which shows as latency."""
    board = Board(Path(os.environ[VARIABLE]))
    begin = time.monotonic()
    for i in range(count):
        wait = begin + i / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        board.sent(first + i)
        enqueue(first + i)  # type: ignore[operator]


def pace_chains(enqueue: object, first: int, count: int, size: int, rate: int) -> None:
    """The same for chains: what is noted as sent is the last job of each."""
    board = Board(Path(os.environ[VARIABLE]))
    begin = time.monotonic()
    for i in range(first, first + count):
        wait = begin + (i - first) / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        board.sent((i + 1) * size - 1)
        enqueue(i * size, size)  # type: ignore[operator]


if __name__ == "__main__":
    main(sys.argv[1:])
