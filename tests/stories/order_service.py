"""An order service. Orders come from its web site, from a marketplace and from a legacy system.

    python -m tests.stories.order_service 8           the web site: places that many orders
    penstock worker tests.stories.order_service:app   the workers

Where the store is in the application's own database, an order and its messages are committed
together, and so are the effect and the completion of a job. Over HTTP the messages follow the
commit; a dedup key and `ON CONFLICT` make it safe to do either again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psycopg

from penstock import Penstock, current
from tests.stories.database import transaction

URL = os.environ["STORY_URL"]
SERVER = os.environ["STORY_SERVER"]
FOLDER = Path(os.environ["STORY_FOLDER"])
IS_EMBEDDED = not URL.startswith("http")
DATABASE = URL if IS_EMBEDDED else f"sqlite:///{FOLDER / 'orders.db'}"
EXPRESS, NORMAL = -1, 0
LEFT, PAID_AT_ONCE, POISONED = 0, 1, 7
TABLES = (
    "CREATE TABLE IF NOT EXISTS customer_order (number INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS parcel (number INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS ledger (number INTEGER PRIMARY KEY)",
)

app = Penstock(URL)
app.queue("billing", dead_letter_queue="billing-dead")
app.queue("billing-dead")
reminders = app.notifications("reminders")
legacy_orders = app.notifications("legacy-orders")


class Order(msgspec.Struct):
    number: int
    is_express: bool = False

    @property
    def key(self) -> str:
        return f"order-{self.number}"

    @property
    def priority(self) -> int:
        return EXPRESS if self.is_express else NORMAL


class CustomerLeft(Exception):
    """Raised inside the transaction of an order, which is rolled back."""


# Orders from elsewhere.


@app.job(queue="intake")
def accept(order: Order) -> None:
    """A marketplace has sent it, over HTTP."""
    place(order, is_job=True)


@legacy_orders.handler()
def accept_legacy(order: str) -> None:
    """The legacy system speaks SQS, whose bodies are text."""
    place(msgspec.json.decode(order, type=Order), is_job=True)


# What happens to each order.


@app.job(queue="packing")
def pack(order: Order) -> None:
    announce(order)
    with transaction(DATABASE) as tx:
        insert(tx, "parcel", order)
        complete(tx)


@app.job(queue="billing", attempts=2, backoff="50ms")
async def bill(order: Order) -> None:
    if order.number == POISONED and not (FOLDER / "fixed").exists():
        raise ZeroDivisionError("no price")
    note(f"bill {order.number}")


@app.subscribe("orders", kinds="order.*")
async def mail(order: Order) -> None:
    note(f"mail {order.number}")


@app.subscribe("orders", name="accounts")
def enter(order: Order) -> None:
    with transaction(DATABASE) as tx:
        insert(tx, "ledger", order)
        complete(tx)


@reminders.handler("payment.due")
def remind(number: int) -> None:
    note(f"remind {number}")


@app.recurring(every="1s", overlap="skip")
@app.job(queue="reports")
def report() -> None:
    note("report")


# Placing an order, in plain code and on an event loop.


def place(order: Order, *, is_job: bool = False, is_leaving: bool = False) -> None:
    with transaction(DATABASE) as tx:
        insert(tx, "customer_order", order)
        if IS_EMBEDDED:
            send(order, tx)
        if is_leaving:
            raise CustomerLeft
        if is_job:
            complete(tx)
    if not IS_EMBEDDED:
        send(order)


def send(order: Order, tx: Any = None) -> None:
    shared: Any = {"dedup_key": order.key, "tags": (order.key,), "tx": tx}
    pack.using(priority=order.priority, **shared).enqueue(order)
    bill.using(**shared).enqueue(order)
    reminders.record(order.number, kind="payment.due", delay="1s", **shared)
    app.publish("orders", order, kind="order.placed", **shared)


async def place_async(order: Order) -> None:
    if DATABASE.startswith("postgresql"):
        async with await psycopg.AsyncConnection.connect(DATABASE) as tx:
            await tx.execute(f"INSERT INTO customer_order VALUES ({order.number:d})")
            await send_async(order, tx)
    elif IS_EMBEDDED:  # sqlite3 has no async form, so the loop waits
        place(order)
    else:
        with transaction(DATABASE) as tx:
            insert(tx, "customer_order", order)
        await send_async(order)


async def send_async(order: Order, tx: Any = None) -> None:
    shared: Any = {"dedup_key": order.key, "tags": (order.key,), "tx": tx}
    await pack.using(priority=order.priority, **shared).enqueue_async(order)
    await bill.using(**shared).enqueue_async(order)
    await reminders.record_async(order.number, kind="payment.due", delay="1s", **shared)
    await app.publish_async("orders", order, kind="order.placed", **shared)


def insert(tx: Any, table: str, order: Order) -> None:
    """In one transaction with its completion a second row would be an error; else it may come."""
    again = "" if IS_EMBEDDED else "ON CONFLICT DO NOTHING"
    tx.execute(f"INSERT INTO {table} VALUES ({order.number:d}) {again}")


def complete(tx: Any) -> None:
    if IS_EMBEDDED:
        current().complete(tx=tx)


def announce(order: Order) -> None:
    """The server pushes to the carrier until it accepts."""
    delivery = {
        "queue": "carrier",
        "uri": f"/carrier/parcels/{order.number}",
        "body": msgspec.to_builtins(order),
        "dedup_key": order.key,
    }
    httpx.post(f"{SERVER}/v1/deliveries", json=delivery, trust_env=False).raise_for_status()


def note(text: str) -> None:
    """One write: lines of several processes do not mix."""
    with (FOLDER / "did").open("a") as file:
        file.write(f"{text}\n")


def sell(count: int) -> None:
    """The first half in plain code, the second half on an event loop."""
    app.open()
    for statement in TABLES:
        with transaction(DATABASE) as tx:
            tx.execute(statement)
    orders = [Order(number, is_express=number % 3 == 2) for number in range(count)]
    for leaving in (LEFT, count + 100):  # the first one comes back, the other does not
        try:
            place(Order(leaving), is_leaving=True)
        except CustomerLeft:
            note(f"left {leaving}")
    for order in orders[: count // 2]:
        place(order)
    asyncio.run(sell_on_loop(orders[count // 2 :]))
    reminders.remove_all(tag=Order(PAID_AT_ONCE).key)


async def sell_on_loop(orders: list[Order]) -> None:
    for order in orders:
        await place_async(order)


if __name__ == "__main__":
    sell(int(sys.argv[1]))
    app.close()
