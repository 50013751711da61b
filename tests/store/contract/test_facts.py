"""Facts: remembered as they were told, found by kind, subject and time, forgotten by age."""

from __future__ import annotations

import json
from typing import Any

from penstock.domain.fact import Fact, FactFilter
from tests.store.desk import Desk

ODD = 'tab\t "quoted" \\ € \U0001f426'


def note(desk: Desk, kind: str = "worker_lost", subject: str = "w1", **data: object) -> None:
    desk.write(lambda s: s.facts.add(kind, subject, at=desk.now, data=data))


def search(desk: Desk, **wanted: Any) -> list[Fact]:
    return desk.read(lambda s: s.facts.search(FactFilter(**wanted)))


def test_a_fact_is_found_as_it_was_told(desk):
    note(desk, "worker_lost", ODD, host=ODD, pid=4711, nothing=None)

    [fact] = search(desk)

    assert (fact.at, fact.kind, fact.subject) == (desk.now, "worker_lost", ODD)
    assert json.loads(fact.data) == {"host": ODD, "pid": 4711, "nothing": None}


def test_facts_are_found_by_kind_and_subject_newest_first(desk):
    for kind, subject in (("a", "x"), ("b", "x"), ("a", "y"), ("a", "x")):
        note(desk, kind, subject, at=desk.now)
        desk.clock.advance(seconds=1)

    def told(**wanted: Any) -> list[tuple[str, str]]:
        return [(fact.kind, fact.subject) for fact in search(desk, **wanted)]

    assert told() == [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")]
    assert told(kind="a") == [("a", "x"), ("a", "y"), ("a", "x")]
    assert told(subject="x") == [("a", "x"), ("b", "x"), ("a", "x")]
    assert told(kind="a", subject="y") == [("a", "y")]
    assert told(kind="c") == []


def test_a_window_takes_its_first_instant_and_not_its_last(desk):
    instants = []
    for _ in range(3):
        note(desk)
        instants.append(desk.now)
        desk.clock.advance(seconds=1)

    found = search(desk, from_at=instants[1], to_at=instants[2])

    assert [fact.at for fact in found] == [instants[1]]


def test_pages_follow_each_other_also_within_one_instant(desk):
    for number in range(5):
        note(desk, subject=str(number))

    seen, before = [], None
    while page := search(desk, limit=2, before=before):
        seen += [fact.subject for fact in page]
        before = (page[-1].at, page[-1].fact_no)

    assert seen == ["4", "3", "2", "1", "0"]


def test_old_facts_are_forgotten_some_at_a_time(desk):
    for _ in range(3):
        note(desk)
    desk.clock.advance(days=1)
    note(desk, subject="young")

    def forget() -> int:
        return desk.write(lambda s: s.facts.forget(before_at=desk.now, limit=2))

    assert [forget(), forget(), forget()] == [2, 1, 0]
    assert [fact.subject for fact in search(desk)] == ["young"]
