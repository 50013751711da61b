"""After both ways of sending and finishing the books are right, whoever examines them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.domain.message.lease import Verb
from tests.docs.snippets import ROOT
from tests.factories import a_new_message, an_act
from tests.store.callers.ways import Way
from tests.store.desk import Desk

KINDS = [("sqlite", "sqlite3"), ("postgres", "psycopg")]


@pytest.mark.parametrize("kind", KINDS, ids=["sqlite", "postgres"], indirect=True)
def test_the_doctor_finds_the_books_right(
    desk: Desk, way: Way, kind: tuple[str, str], where: str
) -> None:
    mail = desk.queue(max_attempts=1)
    for verb in (Verb.COMPLETE, Verb.FAIL, Verb.RELEASE):
        desk.send(mail)
        way.send(desk.store, [a_new_message(mail, now=desk.now) for _ in range(2)])
        way.rollback()
        way.send(desk.store, [a_new_message(mail, now=desk.now) for _ in range(2)])
        way.commit()
        first, second = desk.claim(mail, 2)
        way.act(desk.store, [an_act(verb, first, now=desk.now)])
        way.rollback()
        way.act(desk.store, [an_act(verb, first, now=desk.now)])
        way.commit()
        desk.complete(second)
    desk.store.close()

    url = f"sqlite:///{where}" if kind[0] == "sqlite" else where
    told = subprocess.run(
        [sys.executable, "-m", "penstock", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PENSTOCK_STORE_URL": url, "PYTHONPATH": str(ROOT / "src")},
    ).stdout

    assert "the counters of 1 queues agree with their messages" in told, told
