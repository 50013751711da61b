"""Messages by what they are: what fits is found, in order, and a look costs so much at most."""

from typing import Any

import pytest

from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import SHOWN, Pick, place_of
from penstock.ports.store import Browse
from tests.store.contract.test_browsing import fill


@pytest.fixture
def mail(desk):
    return desk.queue("mail")


def look(desk, mail, pick, *, limit=100, length=10_000, after=None):
    wanted = Browse(queue_no=mail.queue_no, state=pick.state, limit=limit, after=after)
    return desk.read(lambda s: s.messages.stretch(wanted, pick, length=length))


def all_pages(desk, mail, pick, **options):
    """What is found page by page, and how often one had to look."""
    seen, after, looks = [], None, 0
    while True:
        found = look(desk, mail, pick, after=after, **options)
        looks += 1
        seen += [m.id for m in found.messages]
        after = found.end
        if len(found.messages) == options.get("limit", 100):
            after = place_of(found.messages[-1])
        if after is None:
            return seen, looks


@pytest.mark.parametrize(
    ("pick", "fits"),
    [
        (Pick(kind="a"), {"kind": "a"}),
        (Pick(tag="t"), {"tags": ("t",)}),
        (Pick(tag="t"), {"tags": ("x", "t")}),
        (Pick(group="g"), {"group": "g"}),
        (Pick(entity_id="e"), {"entity_id": "e"}),
        (Pick(kind="a", tag="t"), {"kind": "a", "tags": ("t", "t")}),
    ],
)
def test_only_what_fits_is_found(desk, mail, pick, fits):
    others: list[dict[str, Any]] = [
        {},
        {"kind": "b"},
        {"kind": "A"},
        {"tags": ("x",)},
        {"group": "h"},
    ]
    if pick == Pick(kind="a", tag="t"):
        others += [{"kind": "a"}, {"tags": ("t",)}]
    for other in others:
        desk.send(mail, **other)
    mine = desk.send(mail, **fits)

    assert [m.id for m in look(desk, mail, pick).messages] == [mine]


def test_the_time_of_sending_begins_inclusive_and_ends_exclusive(desk, mail):
    ids = []
    for _ in range(4):
        ids.append(desk.send(mail))
        desk.clock.advance(minutes=1)
    begin = desk.get(ids[1]).sent_at
    end = desk.get(ids[3]).sent_at

    found = look(desk, mail, Pick(sent_from=begin, sent_before=end))

    assert [m.id for m in found.messages] == ids[1:3]


@pytest.mark.parametrize(("limit", "length"), [(1, 10), (2, 3), (100, 2), (100, 10_000), (1, 1)])
@pytest.mark.parametrize("state", SHOWN)
def test_pages_of_any_size_find_everything_once_and_in_order(desk, mail, state, limit, length):
    expected = fill(desk, mail, state)

    seen, _ = all_pages(desk, mail, Pick(state=state), limit=limit, length=length)

    assert seen == expected


def test_a_look_goes_no_further_than_it_may_and_says_where_it_stopped(desk, mail):
    desk.send_many(mail, 7, kind="common")
    rare = desk.send(mail, kind="rare")
    desk.send_many(mail, 7, kind="common")

    first = look(desk, mail, Pick(kind="rare"), length=5)
    seen, looks = all_pages(desk, mail, Pick(kind="rare"), length=5)

    assert first.messages == []
    assert first.end is not None
    assert (seen, looks) == ([rare], 4)


def test_messages_of_other_queues_and_states_are_not_found(desk, mail):
    desk.send(desk.queue("other"), kind="a")
    desk.alter(desk.send(mail, kind="a"), lambda m, _: lifecycle.bury(m))
    mine = desk.send(mail, kind="a")

    assert [m.id for m in look(desk, mail, Pick(kind="a")).messages] == [mine]


def test_a_message_that_an_operator_completes_is_done_and_counted(desk, mail):
    message_id = desk.send(mail)

    desk.alter(message_id, lambda m, _: lifecycle.complete_by_hand(m, reason="by telephone"))

    [ending] = desk.endings(id=message_id)
    assert (ending.outcome, ending.reason) == (State.DONE, "by telephone")
    counts = desk.counts(mail)
    assert (counts.ready, counts.done_total) == (0, 1)
