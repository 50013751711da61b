"""A process that is killed leaves both the change and the message, or neither."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.domain.queue.queue import Queue
from tests.docs.snippets import ROOT
from tests.store.callers.transaction_kinds import LOOK, CallerTransaction
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

KILLED = [("sqlite", "sqlite3"), ("postgres", "psycopg"), ("postgres", "asyncpg")]
pytestmark = pytest.mark.parametrize(
    "kind", KILLED, ids=[name for _, name in KILLED], indirect=True
)


@contextmanager
def application(kind: tuple[str, str], where: str, queue: Queue) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.store.callers.application",
            *kind,
            where,
            str(queue.queue_no),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_line(process: subprocess.Popen) -> str:
    assert process.stdout is not None
    return str(process.stdout.readline()).strip()


def test_killed_before_its_commit_it_leaves_neither(
    driver: StoreDriver, transaction: CallerTransaction, kind: tuple[str, str], where: str
) -> None:
    mail = driver.queue()
    with application(kind, where, mail) as process:
        sent = read_line(process)
        assert sent

    assert transaction.run(LOOK) == []
    transaction.rollback()
    assert driver.find(sent) is None
    assert driver.claim_ids(mail) == []
    check_counters(driver)


def test_killed_after_its_commit_it_leaves_both(
    driver: StoreDriver, transaction: CallerTransaction, kind: tuple[str, str], where: str
) -> None:
    mail = driver.queue()
    with application(kind, where, mail) as process:
        sent = read_line(process)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert read_line(process) == "committed"

    assert transaction.run(LOOK) == [("lost",)]
    transaction.rollback()
    assert driver.claim_ids(mail) == [sent]
    check_counters(driver)
