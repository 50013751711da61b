"""Selecting messages by their labels: in order, and with a bounded cost per page."""

from typing import Any

import pytest

from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BROWSABLE, Selection, place_of
from penstock.ports.store import Browse
from tests.store.contract.test_browsing import fill


@pytest.fixture
def mail(driver):
    return driver.queue("mail")


def look(driver, mail, selection, *, limit=100, length=10_000, after=None):
    wanted = Browse(queue_no=mail.queue_no, state=selection.state, limit=limit, after=after)
    return driver.read(lambda s: s.messages.scan_page(wanted, selection, length=length))


def all_pages(driver, mail, selection, **options):
    """All matches page by page, and the number of searches."""
    seen, after, looks = [], None, 0
    while True:
        found = look(driver, mail, selection, after=after, **options)
        looks += 1
        seen += [m.id for m in found.messages]
        after = found.end
        if len(found.messages) == options.get("limit", 100):
            after = place_of(found.messages[-1])
        if after is None:
            return seen, looks


@pytest.mark.parametrize(
    ("selection", "fits"),
    [
        (Selection(kind="a"), {"kind": "a"}),
        (Selection(tag="t"), {"tags": ("t",)}),
        (Selection(tag="t"), {"tags": ("x", "t")}),
        (Selection(group="g"), {"group": "g"}),
        (Selection(entity_id="e"), {"entity_id": "e"}),
        (Selection(kind="a", tag="t"), {"kind": "a", "tags": ("t", "t")}),
    ],
)
def test_only_matching_messages_are_found(driver, mail, selection, fits):
    others: list[dict[str, Any]] = [
        {},
        {"kind": "b"},
        {"kind": "A"},
        {"tags": ("x",)},
        {"group": "h"},
    ]
    if selection == Selection(kind="a", tag="t"):
        others += [{"kind": "a"}, {"tags": ("t",)}]
    for other in others:
        driver.send(mail, **other)
    mine = driver.send(mail, **fits)

    assert [m.id for m in look(driver, mail, selection).messages] == [mine]


def test_the_time_of_sending_begins_inclusive_and_ends_exclusive(driver, mail):
    ids = []
    for _ in range(4):
        ids.append(driver.send(mail))
        driver.clock.advance(minutes=1)
    begin = driver.get(ids[1]).sent_at
    end = driver.get(ids[3]).sent_at

    found = look(driver, mail, Selection(sent_from=begin, sent_before=end))

    assert [m.id for m in found.messages] == ids[1:3]


@pytest.mark.parametrize(("limit", "length"), [(1, 10), (2, 3), (100, 2), (100, 10_000), (1, 1)])
@pytest.mark.parametrize("state", BROWSABLE)
def test_pages_of_any_size_find_everything_once_and_in_order(driver, mail, state, limit, length):
    expected = fill(driver, mail, state)

    seen, _ = all_pages(driver, mail, Selection(state=state), limit=limit, length=length)

    assert seen == expected


def test_a_search_scans_a_limited_number_of_messages_and_returns_where_it_stopped(driver, mail):
    driver.send_many(mail, 7, kind="common")
    rare = driver.send(mail, kind="rare")
    driver.send_many(mail, 7, kind="common")

    first = look(driver, mail, Selection(kind="rare"), length=5)
    seen, looks = all_pages(driver, mail, Selection(kind="rare"), length=5)

    assert first.messages == []
    assert first.end is not None
    assert (seen, looks) == ([rare], 4)


def test_messages_of_other_queues_and_states_are_not_found(driver, mail):
    driver.send(driver.queue("other"), kind="a")
    driver.alter(driver.send(mail, kind="a"), lambda m, _: lifecycle.bury(m))
    mine = driver.send(mail, kind="a")

    assert [m.id for m in look(driver, mail, Selection(kind="a")).messages] == [mine]


def test_a_message_that_an_operator_completes_is_done_and_counted(driver, mail):
    message_id = driver.send(mail)

    driver.alter(message_id, lambda m, _: lifecycle.complete_by_hand(m, reason="by telephone"))

    [ending] = driver.endings(id=message_id)
    assert (ending.outcome, ending.reason) == (State.DONE, "by telephone")
    counts = driver.counts(mail)
    assert (counts.ready, counts.done_total) == (0, 1)
