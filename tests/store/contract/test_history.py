"""History: what is remembered of every ending and of every attempt, and how it is found again."""

import pytest
from msgspec.structs import replace

from penstock.domain.limits import MINUTE
from penstock.domain.message import lease as leases
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.history import Ending
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import EXHAUSTED, State
from tests.factories import an_act


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def done(desk, queue, **draft):
    """Send a message and complete it, a millisecond later each time."""
    message_id = desk.send(queue, **draft)
    desk.clock.advance(ms=1)
    desk.complete(*desk.claim(queue))
    return message_id


def found(desk, **wanted):
    return [ending.id for ending in desk.endings(**wanted)]


def ending_of(message, *, queue, outcome, now, history_no):
    """The line of history that the last state of a message makes."""
    return Ending(
        history_no=history_no,
        id=message.id,
        message_no=message.message_no,
        queue=queue.name,
        outcome=outcome,
        reason=message.reason,
        kind=message.kind,
        entity_id=message.entity_id,
        tag1=message.tag1,
        tag2=message.tag2,
        group=message.group,
        priority=message.priority,
        sent_at=message.sent_at,
        due_at=message.due_at,
        first_leased_at=message.first_leased_at,
        leased_at=message.leased_at,
        finished_at=now,
        attempts=message.attempts,
        failures=message.failures,
        leased_by=message.leased_by,
        last_error=message.last_error,
        size=message.size,
        body_day=message.body_day,
    )


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        (Verb.COMPLETE, State.DONE),
        (Verb.BURY, State.DEAD),
        (Verb.CANCEL, State.CANCELLED),
        (Verb.FAIL, State.DEAD),
    ],
)
def test_an_ending_holds_all_that_the_message_was_at_its_end(desk, verb, outcome):
    mail = desk.queue("mail", max_attempts=2)
    desk.send(mail, kind="k", entity_id="e", tags=("t", "u"), group="g", priority=2, body='"abc"')
    desk.clock.advance(seconds=1)
    desk.act(Verb.FAIL, *desk.claim(mail), delay_ms=0, text="first try")
    [held] = desk.claim(mail, claimed_by="worker-1")
    desk.clock.advance(seconds=1)
    act = an_act(verb, held, now=desk.now, text="so")

    desk.store.act([act]).result()

    last = leases.apply(act, held, mail)
    [ending] = desk.endings()
    assert ending == ending_of(
        last, queue=mail, outcome=outcome, now=desk.now, history_no=ending.history_no
    )


def test_a_batch_of_completions_is_remembered_one_by_one(desk, mail):
    ids = desk.send_many(mail, 70)
    held = desk.claim(mail, 70)

    desk.store.act([an_act(Verb.COMPLETE, m, now=desk.now) for m in held]).result()

    assert sorted(found(desk)) == sorted(ids)


def test_a_message_that_dies_twice_has_two_endings(desk, mail):
    message_id = desk.send(mail)
    desk.act(Verb.BURY, *desk.claim(mail))
    desk.alter(message_id, lambda m, q: transfer.redrive(m, q, now=desk.now))
    desk.clock.advance(ms=1)
    desk.complete(*desk.claim(mail))

    assert [e.outcome for e in desk.endings(id=message_id)] == [State.DONE, State.DEAD]


def test_cancelling_the_dead_adds_no_second_ending(desk, mail):
    message_id = desk.send(mail)
    desk.act(Verb.BURY, *desk.claim(mail))

    desk.alter(message_id, lambda m, _: lifecycle.cancel(m))

    assert [e.outcome for e in desk.endings(id=message_id)] == [State.DEAD]


def test_a_message_moved_to_the_dead_letter_queue_has_an_ending_in_the_queue_it_died_in(desk):
    desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead", max_attempts=1)
    message_id = desk.send(mail)
    desk.act(Verb.FAIL, *desk.claim(mail), text="boom")

    [ending] = desk.endings(id=message_id)

    assert (ending.queue, ending.outcome, ending.reason) == ("mail", State.DEAD, EXHAUSTED)
    assert (ending.attempts, ending.failures, ending.last_error) == (1, 1, "boom")


def test_endings_are_found_by_what_they_are_labelled_with(desk, mail):
    post = desk.queue("post")
    a = done(desk, mail, kind="x", entity_id="1", tags=("red", "big"))
    b = done(desk, mail, kind="y", entity_id="2", tags=("big",))
    c = done(desk, post, kind="x", entity_id="1")

    assert found(desk) == [c, b, a]
    assert found(desk, id=b) == [b]
    assert found(desk, queue="mail") == [b, a]
    assert found(desk, queue="nowhere") == []
    assert found(desk, kind="x") == [c, a]
    assert found(desk, kind="z") == []
    assert found(desk, entity_id="1") == [c, a]
    assert found(desk, tag="red") == [a]
    assert found(desk, tag="big") == [b, a]
    assert found(desk, queue="mail", kind="x", entity_id="1", tag="big") == [a]


def test_a_message_with_the_same_tag_twice_is_found_once(desk, mail):
    message_id = done(desk, mail, tags=("red", "red"))

    assert found(desk, tag="red") == [message_id]


def test_endings_are_found_by_their_outcome(desk, mail):
    completed = done(desk, mail)
    buried, cancelled = desk.send(mail), desk.send(mail)
    desk.alter(buried, lambda m, _: lifecycle.bury(m))
    desk.alter(cancelled, lambda m, _: lifecycle.cancel(m))

    assert found(desk, outcome=State.DONE) == [completed]
    assert found(desk, outcome=State.DEAD) == [buried]
    assert found(desk, outcome=State.CANCELLED) == [cancelled]


def test_a_time_window_holds_its_beginning_and_not_its_end(desk, mail):
    first = done(desk, mail)
    at = desk.now
    second = done(desk, mail)

    assert found(desk, from_at=at, to_at=at + 1) == [first]
    assert found(desk, from_at=at + 1) == [second]
    assert found(desk, to_at=at) == []
    assert found(desk, from_at=at, to_at=at + 2) == [second, first]
    assert found(desk, from_at=at, to_at=at) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_over_several_days_have_no_gaps_and_no_repeats(desk, mail, limit):
    sent = []
    for _ in range(3):
        # Several at the same instant, so that the cursor has to tell them apart.
        ids = desk.send_many(mail, 3)
        for held in desk.claim(mail, 3):
            desk.complete(held)
        sent += ids
        desk.clock.advance(days=2)

    pages, before = [], None
    while page := desk.endings(limit=limit, before=before):
        assert len(page) <= limit
        pages += page
        before = (page[-1].finished_at, page[-1].history_no)

    times = [ending.finished_at for ending in pages]
    assert times == sorted(times, reverse=True)
    assert len(pages) == len(sent)
    assert {ending.id for ending in pages} == set(sent)


def test_pages_keep_to_the_filter(desk, mail):
    post = desk.queue("post")
    mine = []
    for _ in range(3):
        mine.append(done(desk, mail, tags=("t",)))
        done(desk, post, tags=("t",))
        desk.clock.advance(days=1)

    first, second = desk.endings(queue="mail", tag="t", limit=2)
    rest = desk.endings(
        queue="mail", tag="t", limit=2, before=(second.finished_at, second.history_no)
    )

    assert [e.id for e in (first, second, *rest)] == mine[::-1]


def test_the_body_of_an_ended_message_can_still_be_read(desk, mail):
    done(desk, mail, body='"b"', attributes={"a": "1"})
    [ending] = desk.endings()

    content = desk.read(lambda s: s.history.content(ending))

    assert (content.body, content.attributes) == ('"b"', {"a": "1"})


def test_live_messages_have_no_ending(desk, mail):
    desk.send(mail)
    desk.claim(mail)
    desk.send(mail, delay_ms=5)

    assert desk.endings() == []


def test_an_ending_remembers_the_message_as_it_was_before_it_moved(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead")
    message = desk.get(desk.send(mail))

    desk.alter(message.id, lambda m, _: lifecycle.bury(m, reason="no"))

    [ending] = desk.endings()
    last = replace(message, state=State.DEAD, reason="no")
    assert ending == ending_of(
        last, queue=mail, outcome=State.DEAD, now=desk.now, history_no=ending.history_no
    )
    assert desk.get(message.id).queue_no == dead.queue_no
