"""History: ended messages and attempts, and how they are found."""

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
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def done(driver, queue, **draft):
    """Send a message and complete it, a millisecond later each time."""
    message_id = driver.send(queue, **draft)
    driver.clock.advance(ms=1)
    driver.complete(*driver.claim(queue))
    return message_id


def found(driver, **wanted):
    return [ending.id for ending in driver.endings(**wanted)]


def ending_of(message, *, queue, outcome, now, history_no):
    """The history row for the last state of a message."""
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
def test_history_has_the_message_as_it_was_at_its_end(driver, verb, outcome):
    mail = driver.queue("mail", max_attempts=2)
    driver.send(mail, kind="k", entity_id="e", tags=("t", "u"), group="g", priority=2, body='"abc"')
    driver.clock.advance(seconds=1)
    driver.act(Verb.FAIL, *driver.claim(mail), delay_ms=0, text="first try")
    [held] = driver.claim(mail, claimed_by="worker-1")
    driver.clock.advance(seconds=1)
    act = an_act(verb, held, now=driver.now, text="so")

    driver.store.act([act]).result()

    last = leases.apply(act, held, mail)
    [ending] = driver.endings()
    assert ending == ending_of(
        last, queue=mail, outcome=outcome, now=driver.now, history_no=ending.history_no
    )


def test_a_batch_of_completions_is_remembered_one_by_one(driver, mail):
    ids = driver.send_many(mail, 70)
    held = driver.claim(mail, 70)

    driver.store.act([an_act(Verb.COMPLETE, m, now=driver.now) for m in held]).result()

    assert sorted(found(driver)) == sorted(ids)


def test_a_message_that_dies_twice_has_two_endings(driver, mail):
    message_id = driver.send(mail)
    driver.act(Verb.BURY, *driver.claim(mail))
    driver.alter(message_id, lambda m, q: transfer.redrive(m, q, now=driver.now))
    driver.clock.advance(ms=1)
    driver.complete(*driver.claim(mail))

    assert [e.outcome for e in driver.endings(id=message_id)] == [State.DONE, State.DEAD]


def test_cancelling_the_dead_adds_no_second_ending(driver, mail):
    message_id = driver.send(mail)
    driver.act(Verb.BURY, *driver.claim(mail))

    driver.alter(message_id, lambda m, _: lifecycle.cancel(m))

    assert [e.outcome for e in driver.endings(id=message_id)] == [State.DEAD]


def test_a_message_moved_to_the_dead_letter_queue_has_an_ending_in_the_queue_it_died_in(driver):
    driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead", max_attempts=1)
    message_id = driver.send(mail)
    driver.act(Verb.FAIL, *driver.claim(mail), text="boom")

    [ending] = driver.endings(id=message_id)

    assert (ending.queue, ending.outcome, ending.reason) == ("mail", State.DEAD, EXHAUSTED)
    assert (ending.attempts, ending.failures, ending.last_error) == (1, 1, "boom")


def test_endings_are_found_by_what_they_are_labelled_with(driver, mail):
    post = driver.queue("post")
    a = done(driver, mail, kind="x", entity_id="1", tags=("red", "big"))
    b = done(driver, mail, kind="y", entity_id="2", tags=("big",))
    c = done(driver, post, kind="x", entity_id="1")

    assert found(driver) == [c, b, a]
    assert found(driver, id=b) == [b]
    assert found(driver, queue="mail") == [b, a]
    assert found(driver, queue="nowhere") == []
    assert found(driver, kind="x") == [c, a]
    assert found(driver, kind="z") == []
    assert found(driver, entity_id="1") == [c, a]
    assert found(driver, tag="red") == [a]
    assert found(driver, tag="big") == [b, a]
    assert found(driver, queue="mail", kind="x", entity_id="1", tag="big") == [a]


def test_a_message_with_the_same_tag_twice_is_found_once(driver, mail):
    message_id = done(driver, mail, tags=("red", "red"))

    assert found(driver, tag="red") == [message_id]


def test_endings_are_found_by_their_outcome(driver, mail):
    completed = done(driver, mail)
    buried, cancelled = driver.send(mail), driver.send(mail)
    driver.alter(buried, lambda m, _: lifecycle.bury(m))
    driver.alter(cancelled, lambda m, _: lifecycle.cancel(m))

    assert found(driver, outcome=State.DONE) == [completed]
    assert found(driver, outcome=State.DEAD) == [buried]
    assert found(driver, outcome=State.CANCELLED) == [cancelled]


def test_a_time_window_includes_its_beginning_and_not_its_end(driver, mail):
    first = done(driver, mail)
    at = driver.now
    second = done(driver, mail)

    assert found(driver, from_at=at, to_at=at + 1) == [first]
    assert found(driver, from_at=at + 1) == [second]
    assert found(driver, to_at=at) == []
    assert found(driver, from_at=at, to_at=at + 2) == [second, first]
    assert found(driver, from_at=at, to_at=at) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_over_several_days_have_no_gaps_and_no_repeats(driver, mail, limit):
    sent = []
    for _ in range(3):
        # Several at the same instant, so that the cursor has to distinguish them.
        ids = driver.send_many(mail, 3)
        for held in driver.claim(mail, 3):
            driver.complete(held)
        sent += ids
        driver.clock.advance(days=2)

    pages, before = [], None
    while page := driver.endings(limit=limit, before=before):
        assert len(page) <= limit
        pages += page
        before = (page[-1].finished_at, page[-1].history_no)

    times = [ending.finished_at for ending in pages]
    assert times == sorted(times, reverse=True)
    assert len(pages) == len(sent)
    assert {ending.id for ending in pages} == set(sent)


def test_pages_keep_to_the_filter(driver, mail):
    post = driver.queue("post")
    mine = []
    for _ in range(3):
        mine.append(done(driver, mail, tags=("t",)))
        done(driver, post, tags=("t",))
        driver.clock.advance(days=1)

    first, second = driver.endings(queue="mail", tag="t", limit=2)
    rest = driver.endings(
        queue="mail", tag="t", limit=2, before=(second.finished_at, second.history_no)
    )

    assert [e.id for e in (first, second, *rest)] == mine[::-1]


def test_the_body_of_an_ended_message_can_still_be_read(driver, mail):
    done(driver, mail, body='"b"', attributes={"a": "1"})
    [ending] = driver.endings()

    content = driver.read(lambda s: s.history.content(ending))

    assert (content.body, content.attributes) == ('"b"', {"a": "1"})


def test_live_messages_have_no_ending(driver, mail):
    driver.send(mail)
    driver.claim(mail)
    driver.send(mail, delay_ms=5)

    assert driver.endings() == []


def test_an_ending_remembers_the_message_as_it_was_before_it_moved(driver):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead")
    message = driver.get(driver.send(mail))

    driver.alter(message.id, lambda m, _: lifecycle.bury(m, reason="no"))

    [ending] = driver.endings()
    last = replace(message, state=State.DEAD, reason="no")
    assert ending == ending_of(
        last, queue=mail, outcome=State.DEAD, now=driver.now, history_no=ending.history_no
    )
    assert driver.get(message.id).queue_no == dead.queue_no
