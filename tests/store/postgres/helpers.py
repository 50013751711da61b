"""Threads that start together, and statements on a separate connection."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from penstock.domain.queue.queue import Queue
from tests.store.driver import WAIT_S


def at_once(*work: Callable[[], object]) -> list:
    """Run all of them in threads that start together; returns their answers in order."""
    start = threading.Barrier(len(work))
    answers: list = [None] * len(work)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        start.wait(WAIT_S)
        try:
            answers[i] = work[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    return answers


def until(what: Callable[[], object], error: type[Exception]) -> None:
    """Try until it works."""
    for _ in range(100):
        try:
            what()
            return
        except error:
            continue
    raise AssertionError("it never worked")


def by_hand(url: str, statement: str) -> list:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement.encode())
        return found.fetchall() if found.description else []


def processes(url: str) -> list[int]:
    rows = by_hand(
        url,
        "SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'penstock'",
    )
    return [pid for (pid,) in rows]


def slot_of(url: str, queue: Queue, group: str) -> int:
    text = f"SELECT hashtext(concat({queue.queue_no}, '/', '{group}')) & 2047"
    return by_hand(url, text)[0][0]


def assert_lock_is_waited_for(url: str) -> None:
    assert by_hand(url, "SELECT 1 FROM pg_locks WHERE NOT granted")


def cut_off(url: str) -> None:
    for pid in processes(url):
        by_hand(url, f"SELECT pg_terminate_backend({pid}, 10000)")


@contextmanager
def stopped(url: str) -> Iterator[None]:
    """Stop the server's processes of our connections; the system keeps the connections open."""
    pids = processes(url)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
