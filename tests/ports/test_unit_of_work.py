"""Work for a store as a value: nothing runs before the caller decides how."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain.errors import QueueNotFound
from penstock.domain.queue.queue import QueueSettings
from penstock.ports.store import Session
from penstock.ports.unit_of_work import Steps, Work, await_steps, read, run_steps, write
from penstock.store.store import SqlStore, migrate_sqlite, open_sqlite
from tests.clocks import NOON


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    path = tmp_path / "penstock.db"
    migrate_sqlite(path, now=NOON)
    opened = open_sqlite(path, now=NOON)
    yield opened
    opened.close()


def add(store: SqlStore, name: str) -> Work[str]:
    return write(store, lambda s: s.queues.add(name, QueueSettings(), now=NOON).name)


def names(session: Session) -> list[str]:
    return [queue.name for queue in session.queues.page(prefix="", after="", limit=10)]


def test_nothing_happens_before_it_is_run(store: SqlStore) -> None:
    work = add(store, "mail")
    assert read(store, names).result() == []

    assert work.result() == "mail"
    assert read(store, names).result() == ["mail"]


def test_it_is_awaited_on_an_event_loop(store: SqlStore) -> None:
    async def program() -> str:
        return await add(store, "mail")

    assert asyncio.run(program()) == "mail"


def test_its_answer_is_built_from_the_result_outside_of_the_transaction(store: SqlStore) -> None:
    shouted = add(store, "mail").map(str.upper).map(lambda name: f"{name}!")

    assert shouted.result() == "MAIL!"
    assert asyncio.run(called_back(shouted_again(store))) == "OTHER"


def shouted_again(store: SqlStore) -> Work[str]:
    return add(store, "other").map(str.upper)


async def called_back(work: Work[str]) -> object:
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    work.then(answer.set_result)
    return await answer


def test_an_error_is_called_back_with_like_an_answer(store: SqlStore) -> None:
    def fail(_: Session) -> str:
        raise QueueNotFound("mail")

    assert isinstance(asyncio.run(called_back(write(store, fail))), QueueNotFound)
    broken = add(store, "mail").map(lambda name: name[100])
    assert isinstance(asyncio.run(called_back(broken)), IndexError)


def test_steps_run_one_after_the_other_each_with_the_answer_before(store: SqlStore) -> None:
    def add_two() -> Steps[list[str]]:
        first = yield from add(store, "mail")
        second = yield from add(store, f"{first}.dead")
        return [first, second]

    assert run_steps(add_two()) == ["mail", "mail.dead"]
    with pytest.raises(Exception, match="mail"):  # they exist now
        asyncio.run(await_steps(add_two()))


def test_work_that_is_never_run_is_warned_of(store: SqlStore) -> None:
    with pytest.warns(RuntimeWarning, match=re.escape("was never run")):
        add(store, "mail")
