"""Browsing messages: every state in its natural order, page by page, without changes."""

import pytest

from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Browse


@pytest.fixture
def mail(driver):
    return driver.queue("mail")


CURSOR = {
    State.READY: lambda m: (int(m.is_blocked), m.priority, m.fair_position, m.order_no),
    State.WAITING: lambda m: (m.due_at, m.message_no, 0, 0),
    State.LEASED: lambda m: (m.due_at, m.message_no, 0, 0),
    State.DEAD: lambda m: (m.message_no, 0, 0, 0),
}


def fill(driver, mail, state):
    """Six messages in the state; returns their ids in the order in which they should be seen."""
    ids = [driver.send(mail, priority=n % 3 if state is State.READY else 0) for n in range(6)]
    places = sorted(range(6), key=lambda n: (n % 3, n))
    if state is State.READY:
        return [ids[n] for n in places]
    for n, message_id in enumerate(ids):
        due_at = driver.now + 1 + n % 3
        if state is State.WAITING:
            driver.alter(
                message_id,
                lambda m, _, due_at=due_at: lifecycle.reschedule(m, due_at=due_at, now=driver.now),
            )
        elif state is State.LEASED:
            driver.claim(mail, lease_ms=due_at - driver.now)
        else:
            driver.alter(message_id, lambda m, _: lifecycle.bury(m))
    return ids if state is State.DEAD else [ids[n] for n in places]


@pytest.mark.parametrize("limit", [1, 2, 4, 100])
@pytest.mark.parametrize("state", CURSOR)
def test_each_state_is_seen_in_its_natural_order_page_by_page(driver, mail, state, limit):
    expected = fill(driver, mail, state)

    seen, after = [], None
    while True:
        wanted = Browse(queue_no=mail.queue_no, state=state, limit=limit, after=after)
        page = driver.read(lambda s, wanted=wanted: s.messages.browse(wanted))
        if not page:
            break
        seen += page
        after = CURSOR[state](page[-1])

    assert [m.id for m in seen] == expected
    assert {m.state for m in seen} == {state}


def test_only_the_queue_asked_for_is_seen(driver, mail):
    post = driver.queue("post")
    mine, _ = driver.send(mail), driver.send(post)

    assert driver.browse_ids(mail, State.READY) == [mine]


def test_looking_changes_nothing(driver, mail):
    message = driver.get(driver.send(mail))

    for _ in range(2):
        assert driver.browse(mail, State.READY) == [message]


def test_messages_that_cannot_be_claimed_yet_are_listed_last(driver):
    mail = driver.queue("ordered", ordering=Ordering.GROUP)
    first, blocked, other = (driver.send(mail, group=group) for group in "aab")

    assert driver.browse_ids(mail, State.READY) == [first, other, blocked]
