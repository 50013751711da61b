"""A billing run that is killed twice: each account pays once and gets one receipt.

Not over HTTP: a server cannot take part in a transaction of the application's database.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from penstock import Penstock
from penstock.domain.message.lifecycle import State
from tests.stories.stage import Stage

APP = "tests.stories.billing:app"
ACCOUNTS = 40
KEPT = [number for number in range(ACCOUNTS) if number % 5 != 4]


def rows(url: str, table: str) -> list[int]:
    opened: Any
    if url.startswith("sqlite"):
        opened = sqlite3.connect(url.removeprefix("sqlite:///").partition("?")[0], timeout=30)
    else:
        opened = psycopg.connect(url)
    with closing(opened) as connection:
        found = connection.execute(f"SELECT * FROM {table}").fetchall()
    return sorted(number for (number,) in found)


def test_each_account_pays_once_and_gets_one_receipt_whatever_is_killed_meanwhile(
    embedded_stage: Stage,
) -> None:
    stage = embedded_stage
    opening = stage.run("tests.stories.billing", str(ACCOUNTS))
    stage.until(lambda: "account" in _tables(stage.url) and len(rows(stage.url, "account")) > 9)
    opening.kill()
    worker = stage.work(APP)
    assert stage.run("tests.stories.billing", str(ACCOUNTS)).wait() == 0

    stage.until(lambda: len(rows(stage.url, "payment")) > len(KEPT) // 3)
    worker.kill()
    worker = stage.work(APP)
    stage.until(lambda: len(rows(stage.url, "receipt")) >= len(KEPT))
    assert worker.end() == 0

    for table in ("account", "payment", "receipt"):
        assert rows(stage.url, table) == KEPT
    with Penstock(stage.url) as app:
        billing = app.notifications("billing")
        for number in range(ACCOUNTS):
            tag = f"account-{number}"
            assert list(billing.find(tag=tag)) == []
            states = [one.state for one in billing.past(tag=tag)]
            assert states == ([State.DONE] if number in KEPT else [])


def _tables(url: str) -> set[str]:
    listing = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if not url.startswith("sqlite"):
        with psycopg.connect(url) as connection:
            found = connection.execute("SELECT tablename FROM pg_tables").fetchall()
    else:
        path = url.removeprefix("sqlite:///").partition("?")[0]
        with closing(sqlite3.connect(path, timeout=30)) as file:
            found = file.execute(listing).fetchall()
    return {name for (name,) in found}
