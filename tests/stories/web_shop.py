"""A web shop. Orders go out on a bus; stock, mails and invoices are jobs in queues of their own.

    python -m tests.stories.web_shop 30            the front: sells that many orders
    penstock worker tests.stories.web_shop:app     the workers

Each invoice is announced to a partner by a webhook, and stock is taken every second. What is sent
by a handler that may run twice has a dedup key, so there is one message for each order.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import httpx
import msgspec

from penstock import Penstock

SERVER = os.environ["STORY_SERVER"]
DID = Path(os.environ["STORY_FOLDER"]) / "did"

app = Penstock(os.environ["STORY_URL"])


class Order(msgspec.Struct):
    number: int
    customer: str

    @property
    def key(self) -> str:
        return f"order-{self.number}"


@app.job(queue="stock", attempts=50, backoff="200ms")
def reserve(order: Order) -> None:
    note(f"stock {order.number}")


@app.job(queue="mail", attempts=50, backoff="200ms")
async def confirm(order: Order) -> None:
    note(f"mail {order.number}")


@app.job(queue="invoices", attempts=50, backoff="200ms")
def bill(order: Order) -> None:
    announce(order)
    note(f"invoice {order.number}")


@app.subscribe("orders")
def fulfil(order: Order) -> None:
    for job in (reserve, confirm, bill):
        job.using(dedup_key=order.key).enqueue(order)


@app.subscribe("orders")
async def audit(order: Order) -> None:
    note(f"audit {order.number}")


@app.recurring(every="1s", overlap="skip")
@app.job(queue="stocktaking")
def take_stock() -> None:
    note("stocktaking")


def announce(order: Order) -> None:
    """The partner hears of it when it can be reached; the server pushes until then."""
    delivery = {
        "queue": "partner",
        "method": "POST",
        "uri": f"/partner/invoices/{order.number}",
        "body": msgspec.to_builtins(order),
        "dedup_key": order.key,
    }
    httpx.post(f"{SERVER}/v1/deliveries", json=delivery, trust_env=False).raise_for_status()


def note(text: str) -> None:
    """One write: lines of several processes do not mix."""
    with DID.open("a") as file:
        file.write(f"{text}\n")


def sell(count: int) -> None:
    """May be run again after a crash: an order that was published is not published twice."""
    for number in range(count):
        order = Order(number, f"customer {number % 7}")
        app.publish("orders", order, dedup_key=order.key)


if __name__ == "__main__":
    with app:
        sell(int(sys.argv[1]))
