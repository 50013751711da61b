"""An application with many queues: jobs in two, a notification queue, three subscriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock import Penstock

app = Penstock("sqlite:///data/never-opened.db")  # tests pass the URL
billing = app.notifications("billing")


def note(file: str, text: str) -> None:
    with Path(file).open("a") as log:
        log.write(f"{text}\n")


@app.job(queue="mail")
def mail(file: str, text: str) -> None:
    note(file, f"mail {text}")


@app.job(queue="reports")
async def report(file: str, text: str) -> None:
    note(file, f"report {text}")


@app.job(queue="reports")
def split(file: str, depth: int) -> None:
    """Enqueues two more jobs of each kind, down to depth 0."""
    note(file, f"split {depth}")
    if depth:
        split.enqueue_many([{"file": file, "depth": depth - 1}] * 2)
        mail.enqueue(file, str(depth))


@billing.handler()
def bill(body: dict[str, Any]) -> None:
    note(body["file"], f"bill {body['text']}")


def _subscribe(name: str) -> None:
    @app.subscribe("orders", name=name)
    def handle(event: dict[str, Any]) -> None:
        note(event["file"], f"{name} {event['text']}")


for _name in ("audit", "mailer", "search"):
    _subscribe(_name)
