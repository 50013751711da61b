"""Stores to be damaged: closed cleanly, or left with everything in the log as by a crash."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from penstock.domain.queue.queue import Ordering
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.store.driver import StoreDriver

FILE = "penstock.db"
COUNT = 60  # messages that are sent, one by one
DONE = 4  # of them are completed
QUEUES = ("mail", "orders")
PAGE = 4096
FRAME = PAGE + 24


def fill(folder: Path, *, is_crash: bool, checksums: bool = True) -> Path:
    """Two queues, groups, dedup keys, history, leases; returns the file."""
    live = folder / "live"
    store = open_sqlite(live / FILE, now=1, checksums=checksums)
    driver = StoreDriver(store, ManualClock())
    queues = [driver.queue(name, ordering=Ordering.GROUP) for name in QUEUES]
    for number in range(COUNT):
        group = f"g{number % 3}" if number % 4 == 0 else None
        text = f'"{number} {"x" * (9_000 if number % 20 == 0 else 40)}"'
        driver.send(queues[number % 2], body=text, group=group, dedup_key=f"key-{number}")
    for message in driver.claim(queues[0], DONE):
        driver.complete(message)
    driver.claim(queues[1], 3)
    if not is_crash:
        store.close()
    copy = shutil.copytree(live, folder / "left")
    if is_crash:
        store.close()
    return Path(copy) / FILE


def copy_of(path: Path, folder: Path) -> Path:
    return Path(shutil.copytree(path.parent, folder)) / path.name


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def flip(path: Path, byte: int, bit: int = 3) -> None:
    overwrite(path, byte, bytes([path.read_bytes()[byte] ^ 1 << bit]))


def overwrite(path: Path, byte: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(byte)
        file.write(content)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def ask(path: Path, query: str) -> list[tuple]:
    db = apsw.Connection(str(path))
    try:
        return db.execute(query).fetchall()
    finally:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.close()


def live_ids(path: Path, folder: Path) -> set[str]:
    """Asked of a copy: a connection to the original would change its files."""
    copy = copy_of(path, folder)
    found = {found for (found,) in ask(copy, "SELECT id FROM message")}
    shutil.rmtree(folder)
    return found


def page_of(path: Path, table: str, place: int = 0) -> int:
    """The number of a leaf page of a table or index, in the order of its rows."""
    pages = ask(
        path,
        f"SELECT pageno FROM dbstat WHERE name = '{table}' AND pagetype = 'leaf' ORDER BY path",
    )
    return int(pages[place][0])
