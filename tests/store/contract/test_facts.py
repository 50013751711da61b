"""Facts: stored as given, found by kind, subject and time, pruned by age."""

from __future__ import annotations

import json
from typing import Any

from penstock.domain.fact import Fact, FactFilter
from tests.store.driver import StoreDriver

ODD = 'tab\t "quoted" \\ € \U0001f426'


def note(
    driver: StoreDriver, kind: str = "worker_lost", subject: str = "w1", **data: object
) -> None:
    driver.write(lambda s: s.facts.add(kind, subject, at=driver.now, data=data))


def search(driver: StoreDriver, **wanted: Any) -> list[Fact]:
    return driver.read(lambda s: s.facts.search(FactFilter(**wanted)))


def test_a_fact_is_found_as_it_was_added(driver):
    note(driver, "worker_lost", ODD, host=ODD, pid=4711, nothing=None)

    [fact] = search(driver)

    assert (fact.at, fact.kind, fact.subject) == (driver.now, "worker_lost", ODD)
    assert json.loads(fact.data) == {"host": ODD, "pid": 4711, "nothing": None}


def test_facts_are_found_by_kind_and_subject_newest_first(driver):
    for kind, subject in (("a", "x"), ("b", "x"), ("a", "y"), ("a", "x")):
        note(driver, kind, subject, at=driver.now)
        driver.clock.advance(seconds=1)

    def listed(**wanted: Any) -> list[tuple[str, str]]:
        return [(fact.kind, fact.subject) for fact in search(driver, **wanted)]

    assert listed() == [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")]
    assert listed(kind="a") == [("a", "x"), ("a", "y"), ("a", "x")]
    assert listed(subject="x") == [("a", "x"), ("b", "x"), ("a", "x")]
    assert listed(kind="a", subject="y") == [("a", "y")]
    assert listed(kind="c") == []


def test_a_window_takes_its_first_instant_and_not_its_last(driver):
    instants = []
    for _ in range(3):
        note(driver)
        instants.append(driver.now)
        driver.clock.advance(seconds=1)

    found = search(driver, from_at=instants[1], to_at=instants[2])

    assert [fact.at for fact in found] == [instants[1]]


def test_pages_follow_each_other_also_within_one_instant(driver):
    for number in range(5):
        note(driver, subject=str(number))

    seen, before = [], None
    while page := search(driver, limit=2, before=before):
        seen += [fact.subject for fact in page]
        before = (page[-1].at, page[-1].fact_no)

    assert seen == ["4", "3", "2", "1", "0"]


def test_old_facts_are_forgotten_some_at_a_time(driver):
    for _ in range(3):
        note(driver)
    driver.clock.advance(days=1)
    note(driver, subject="young")

    def forget() -> int:
        return driver.write(lambda s: s.facts.forget(before_at=driver.now, limit=2))

    assert [forget(), forget(), forget()] == [2, 1, 0]
    assert [fact.subject for fact in search(driver)] == ["young"]
