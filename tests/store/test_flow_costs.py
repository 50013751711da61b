"""What flows cost: ordinary messages nothing, members the same however many others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.message.lease import Verb
from tests.store import flows
from tests.store.driver import StoreDriver
from tests.store.flows import a_member

METHODS = ("rows", "post", "run", "insert", "update")


@pytest.fixture
def queries(driver: StoreDriver, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the queries that the store runs, by name."""
    names: Counter[str] = Counter()
    database = type(driver.write(lambda s: s.db))  # type: ignore[attr-defined]
    for method in METHODS:
        monkeypatch.setattr(database, method, _counting(getattr(database, method), names))
    return names


def _counting(run: Callable[..., Any], names: Counter[str]) -> Callable[..., Any]:
    def counted(database: object, name: str, *args: Any, **kwargs: Any) -> Any:
        names[name] += 1
        return run(database, name, *args, **kwargs)

    return counted


def test_the_life_of_an_ordinary_message_does_not_touch_flows(
    driver: StoreDriver, queries: Counter[str]
) -> None:
    mail = driver.queue(max_attempts=2)
    for _ in range(10):
        flows.create(driver, a_member(mail, "a", delay_ms=60_000), a_member(mail, "b", ("a",)))
    assert any(name.startswith("flows.") for name in queries)
    queries.clear()

    driver.send_many(mail, 3)
    for verb in (Verb.COMPLETE, Verb.FAIL, Verb.BURY):
        [message] = driver.claim(mail)
        driver.act(verb, message)
    driver.claim(mail)
    driver.clock.advance(seconds=40)  # its lease is lost
    driver.write(lambda s: s.maintenance.return_due(mail.queue_no, now=driver.now, limit=10))

    assert queries
    assert [name for name in queries if name.startswith("flows.")] == []


def test_the_end_of_a_member_takes_the_same_queries_however_many_others_wait(
    driver: StoreDriver, queries: Counter[str]
) -> None:
    def queries_of_an_end(others: int) -> Counter[str]:
        mail = driver.queue(f"beside-{others}")
        late = a_member(mail, "late", delay_ms=60_000)
        waiting = [a_member(mail, f"w{i}", ("late",)) for i in range(others)]
        flows.create(driver, a_member(mail, "a"), a_member(mail, "b", ("a",)), late, *waiting)
        [first] = driver.claim(mail)
        queries.clear()
        driver.complete(first)
        ours = ("flows.", "messages.")  # a node also wakes others from time to time
        return Counter({name: n for name, n in queries.items() if name.startswith(ours)})

    assert queries_of_an_end(0) == queries_of_an_end(1_000)
