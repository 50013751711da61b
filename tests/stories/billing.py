"""A billing run in the manner of killbill: payments fall due, are tried again, and send receipts.

    python -m tests.stories.billing 40            opens that many accounts
    penstock worker tests.stories.billing:app     collects what is due

The application's tables are in the same database as the store. Account and notification, payment
and receipt, and the completion of each job are written in one transaction: without a unique
constraint in any table, nothing is there twice and nothing is missing.
"""

from __future__ import annotations

import os
import sys
import threading

from penstock import DueNotification, Penstock, current
from tests.stories.database import transaction

URL = os.environ["STORY_URL"]
TABLES = (
    "CREATE TABLE IF NOT EXISTS account (number INTEGER)",
    "CREATE TABLE IF NOT EXISTS payment (account INTEGER)",
    "CREATE TABLE IF NOT EXISTS receipt (account INTEGER)",
)

app = Penstock(URL)
due = app.notifications("billing", backoff="100ms", max_attempts=20)


def is_abandoned(account: int) -> bool:
    """The customer leaves before the account is opened: its transaction is rolled back."""
    return account % 5 == 4


@due.handler("payment.due")
def collect(account: int, about: DueNotification) -> None:
    if about.attempts == 1 and account % 3 == 0:
        raise ConnectionError("the bank does not answer")
    with transaction(URL) as tx:
        tx.execute(f"INSERT INTO payment VALUES ({account:d})")
        send_receipt.using(tx=tx).enqueue(account)
        threading.Event().wait(0.02)  # where a crash hurts most
        current().complete(tx=tx)


@app.job(queue="receipts", attempts=20, backoff="100ms")
def send_receipt(account: int) -> None:
    with transaction(URL) as tx:
        tx.execute(f"INSERT INTO receipt VALUES ({account:d})")
        current().complete(tx=tx)


def open_accounts(count: int) -> None:
    """Can be run again after a crash: it continues where the last transaction ended."""
    app.open()
    for statement in TABLES:
        with transaction(URL) as tx:
            tx.execute(statement)
    for number in range(count):
        with transaction(URL) as tx:
            if tx.execute(f"SELECT 1 FROM account WHERE number = {number:d}").fetchone():
                continue
            tx.execute(f"INSERT INTO account VALUES ({number:d})")
            due.record(number, kind="payment.due", delay="1s", tags=(f"account-{number}",), tx=tx)
            if is_abandoned(number):
                tx.rollback()


if __name__ == "__main__":
    open_accounts(int(sys.argv[1]))
    app.close()
