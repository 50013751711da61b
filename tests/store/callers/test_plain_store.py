"""A store in a file that an application shares is a store like the others."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis.stateful import run_state_machine_as_test

from penstock.ports.store import Store
from penstock.store.store import open_sqlite
from tests.store.machine import StoreMachine
from tests.store.test_state_machine import IS_FULL, PLAYS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    application = sqlite3.connect(tmp_path / "app.db")
    application.execute("CREATE TABLE orders (name TEXT)")
    store = open_sqlite(tmp_path / "app.db")
    yield store
    store.close()
    application.close()


@pytest.mark.timeout(7_200 if IS_FULL else 240)
def test_it_and_the_model_agree_after_every_step(store: Store) -> None:
    class Machine(StoreMachine):
        pass

    Machine.store = store

    run_state_machine_as_test(Machine, settings=PLAYS)
