"""The counters are right after both ways of sending and finishing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.domain.message.lease import Verb
from tests.docs.snippets import ROOT
from tests.factories import a_new_message, an_act
from tests.store.callers.transaction_kinds import CallerTransaction
from tests.store.driver import StoreDriver

KINDS = [("sqlite", "sqlite3"), ("postgres", "psycopg")]


@pytest.mark.parametrize("kind", KINDS, ids=["sqlite", "postgres"], indirect=True)
def test_the_doctor_finds_the_counters_right(
    driver: StoreDriver, transaction: CallerTransaction, kind: tuple[str, str], where: str
) -> None:
    mail = driver.queue(max_attempts=1)
    for verb in (Verb.COMPLETE, Verb.FAIL, Verb.RELEASE):
        driver.send(mail)
        transaction.send(driver.store, [a_new_message(mail, now=driver.now) for _ in range(2)])
        transaction.rollback()
        transaction.send(driver.store, [a_new_message(mail, now=driver.now) for _ in range(2)])
        transaction.commit()
        first, second = driver.claim(mail, 2)
        transaction.act(driver.store, [an_act(verb, first, now=driver.now)])
        transaction.rollback()
        transaction.act(driver.store, [an_act(verb, first, now=driver.now)])
        transaction.commit()
        driver.complete(second)
    driver.store.close()

    url = f"sqlite:///{where}" if kind[0] == "sqlite" else where
    output = subprocess.run(
        [sys.executable, "-m", "penstock", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PENSTOCK_STORE_URL": url, "PYTHONPATH": str(ROOT / "src")},
    ).stdout

    assert "the counters of 1 queues agree with their messages" in output, output
