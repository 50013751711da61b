"""The Celery application, the same for the worker and for the test that sends to it.

Tasks write marks to files in a folder, so that a test sees what ran, how often and in which order.
"""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import Reject

BROKER, OPTIONS, FOLDER = "SHOP_BROKER", "SHOP_OPTIONS", "SHOP_FOLDER"
LONG_S = 30.0


def make_app(broker: str, folder: Path, options: dict[str, Any]) -> Celery:
    app = Celery(
        "shop", broker=broker, backend=f"file://{folder / 'results'}", set_as_current=False
    )
    app.conf.update(
        broker_transport_options=options,
        broker_connection_retry_on_startup=True,
        task_default_queue="shop",
        task_create_missing_queues=True,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
    )
    _add_tasks(app, folder)
    return app


def marks(folder: Path, journal: str) -> list[str]:
    path = folder / journal
    return path.read_text().split() if path.exists() else []


def _add_tasks(app: Celery, folder: Path) -> None:
    task = partial(app.task, shared=False)  # otherwise all apps of a process share one folder

    def mark(journal: str, word: object) -> int:
        """Write a mark; returns how many there were before."""
        before = len(marks(folder, journal))
        with (folder / journal).open("a") as file:
            file.write(f"{word}\n")
        return before

    @task(name="add")
    def add(x: int, y: int) -> int:
        return x + y

    @task(name="measure")
    def measure(text: str) -> int:
        return len(text)

    @task(name="note")
    def note(journal: str, word: object) -> None:
        mark(journal, word)

    @task(name="flaky", bind=True, autoretry_for=(OSError,), max_retries=5, default_retry_delay=0.1)
    def flaky(self: Any, journal: str, works_at: int) -> int:
        mark(journal, self.request.retries)
        if self.request.retries < works_at:
            raise OSError("not yet")
        return int(self.request.retries)

    @task(name="send_back", bind=True, acks_late=True)
    def send_back(self: Any, journal: str) -> str:
        if mark(journal, self.request.id) == 0:
            raise Reject("try again", requeue=True)
        return "done at last"

    @task(name="throw_away", acks_late=True)
    def throw_away(journal: str) -> None:
        mark(journal, "seen")
        raise Reject("never again", requeue=False)

    @task(name="hang_once", acks_late=True)
    def hang_once(journal: str) -> str:
        if mark(journal, "begun") == 0:
            threading.Event().wait(LONG_S)  # until the process is killed
        return "survived"

    @task(name="wait_for")
    def wait_for(journal: str, sign: str) -> None:
        mark(journal, "begun")
        for _ in range(int(LONG_S / 0.02)):
            if (folder / sign).exists():
                return
            threading.Event().wait(0.02)
