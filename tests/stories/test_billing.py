"""A billing run that is killed twice: each account pays once and gets one receipt.

Not over HTTP: a server cannot take part in a transaction of the application's database.
"""

from __future__ import annotations

from penstock import Penstock
from penstock.domain.message.lifecycle import State
from tests.stories.database import numbers, tables
from tests.stories.environment import StoryEnvironment

APP = "tests.stories.billing:app"
ACCOUNTS = 40
KEPT = [number for number in range(ACCOUNTS) if number % 5 != 4]


def test_each_account_pays_once_and_gets_one_receipt_whatever_is_killed_meanwhile(
    embedded_environment: StoryEnvironment,
) -> None:
    environment = embedded_environment
    opening = environment.run("tests.stories.billing", str(ACCOUNTS))
    environment.until(
        lambda: (
            "account" in tables(environment.url) and len(numbers(environment.url, "account")) > 9
        )
    )
    opening.kill()
    worker = environment.work(APP)
    assert environment.run("tests.stories.billing", str(ACCOUNTS)).wait() == 0

    environment.until(lambda: len(numbers(environment.url, "payment")) > len(KEPT) // 3)
    worker.kill()
    worker = environment.work(APP)
    environment.until(lambda: len(numbers(environment.url, "receipt")) >= len(KEPT))
    environment.until(lambda: worker.has_logged("is ready"))  # the first may have done everything
    assert worker.end() == 0

    for table in ("account", "payment", "receipt"):
        assert numbers(environment.url, table) == KEPT
    with Penstock(environment.url) as app:
        billing = app.notifications("billing")
        for number in range(ACCOUNTS):
            tag = f"account-{number}"
            assert list(billing.find(tag=tag)) == []
            states = [one.state for one in billing.past(tag=tag)]
            assert states == ([State.DONE] if number in KEPT else [])
