"""Every program on the page about transactions runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from penstock.store.postgres.store import migrate
from tests.docs.snippets import ROOT, read_blocks

PAGE = "docs/transactions.md"
URL = "postgresql://localhost/shop"
LOOK = """
claimed = broker.messages.claim(mail, limit=10).result().messages
print(sorted(content.body for _, content in claimed))
broker.close()
"""


def run(folder: Path, *marks: str, end: str = LOOK, url: str = URL) -> str:
    parts = [read_blocks(PAGE, mark) for mark in marks]
    assert all(parts), "a block is not there"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*parts, end]).replace(URL, url)],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_example_for_sqlite_sends(tmp_path: Path) -> None:
    assert run(tmp_path, "sqlite", "sqlite3") == "['ann']"


def test_the_example_for_sqlite_completes(tmp_path: Path) -> None:
    end = "print(shop.execute('SELECT customer FROM orders').fetchall())\n" + LOOK

    shown = run(tmp_path, "sqlite", "sqlite3", "complete", end=end)

    assert shown.splitlines() == ["[('ANN',)]", "[]"]


@pytest.mark.parametrize(
    ("mark", "sent"),
    [
        ("psycopg", "['ann']"),
        ("psycopg2", "['ann']"),
        ("async_psycopg", "['ann']"),
        ("asyncpg", "['ann']"),
        ("sqlalchemy", "['ann', 'bob']"),
        ("async_sqlalchemy", "['ann']"),
    ],
)
def test_the_examples_for_postgres_send(
    tmp_path: Path, postgres_url: str, mark: str, sent: str
) -> None:
    migrate(postgres_url)
    with psycopg.connect(postgres_url) as setup:
        setup.execute("CREATE TABLE orders (customer text)")

    assert run(tmp_path, "postgres", mark, url=postgres_url) == sent
    with psycopg.connect(postgres_url) as shop:
        assert len(shop.execute("SELECT customer FROM orders").fetchall()) == sent.count(",") + 1
