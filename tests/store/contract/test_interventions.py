"""Operations on messages by hand: cancel, bury, reschedule, redrive, purge."""

import threading

import pytest
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost, MessageNotFound, QueueNotFound, WrongState
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Counts, DedupUntil, Ordering


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def put(driver, queue, state):
    """A message of the queue in that state."""
    message_id = driver.send(queue, delay_ms=5 if state is State.WAITING else 0)
    if state in (State.LEASED, State.DEAD):
        [held] = driver.claim(queue)
        if state is State.DEAD:
            driver.act(Verb.BURY, held, text="broken")
    return driver.get(message_id)


def redrive_all(driver, queue, *, to=None, limit=100):
    number = None if to is None else to.queue_no
    return driver.write(
        lambda s: s.messages.redrive(queue.queue_no, to=number, limit=limit, now=driver.now)
    )


def purge(driver, queue, limit=100):
    return driver.write(lambda s: s.messages.purge(queue.queue_no, limit=limit, now=driver.now))


@pytest.mark.parametrize("state", [State.WAITING, State.READY, State.DEAD])
def test_a_cancelled_message_leaves_the_queue(driver, mail, state):
    message = put(driver, mail, state)

    changed = driver.alter(message.id, lambda m, _: lifecycle.cancel(m, reason="no"))

    assert changed.state is State.CANCELLED
    assert driver.find(message.id) is None
    assert driver.counts(mail).live + driver.counts(mail).dead == 0


@pytest.mark.parametrize("state", [State.WAITING, State.READY])
def test_a_buried_message_rests_in_its_queue(driver, mail, state):
    message = put(driver, mail, state)

    changed = driver.alter(message.id, lambda m, _: lifecycle.bury(m, reason="no"))

    assert changed == driver.get(message.id) == lifecycle.bury(message, reason="no")
    assert driver.browse_ids(mail, State.DEAD) == [message.id]


@pytest.mark.parametrize("state", [State.WAITING, State.READY])
@pytest.mark.parametrize("delay_ms", [-5, 0, 5])
def test_a_rescheduled_message_has_its_new_due_date(driver, mail, state, delay_ms):
    message = put(driver, mail, state)
    due_at = driver.now + delay_ms

    driver.alter(message.id, lambda m, _: lifecycle.reschedule(m, due_at=due_at, now=driver.now))

    expected = lifecycle.reschedule(message, due_at=due_at, now=driver.now)
    assert driver.get(message.id) == expected


def test_a_message_brought_forward_can_be_claimed_at_once(driver, mail):
    message = put(driver, mail, State.WAITING)

    driver.alter(
        message.id, lambda m, _: lifecycle.reschedule(m, due_at=driver.now, now=driver.now)
    )

    assert driver.claim_ids(mail) == [message.id]


CHANGES = {
    "cancel": lambda m, q: lifecycle.cancel(m),
    "bury": lambda m, q: lifecycle.bury(m),
    "reschedule": lambda m, q: lifecycle.reschedule(m, due_at=0, now=0),
    "redrive": lambda m, q: transfer.redrive(m, q, now=0),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_leased_message_is_left_alone(driver, mail, how):
    message = put(driver, mail, State.LEASED)

    with pytest.raises(WrongState):
        driver.alter(message.id, CHANGES[how])

    assert driver.get(message.id) == message


RUNNING = {
    "cancel": lambda m, q: lifecycle.cancel(m, reason="no", is_running_ok=True),
    "bury": lambda m, q: lifecycle.bury(m, reason="no", is_running_ok=True),
}
ENDS_IN = {"cancel": State.CANCELLED, "bury": State.DEAD}


@pytest.mark.parametrize("how", RUNNING)
def test_a_running_message_is_ended_on_request_and_history_names_its_worker(driver, mail, how):
    driver.send(mail)
    [held] = driver.claim(mail, claimed_by="worker-7")
    driver.clock.advance(seconds=3)

    answered = driver.alter(held.id, RUNNING[how])

    assert answered.state is ENDS_IN[how]
    [ending] = driver.endings(id=held.id)
    assert (ending.outcome, ending.reason) == (ENDS_IN[how], "no")
    assert (ending.leased_by, ending.leased_at) == ("worker-7", held.leased_at)
    assert (ending.finished_at, ending.attempts) == (driver.now, 1)
    assert driver.counts(mail).leased == 0


@pytest.mark.parametrize("how", RUNNING)
@pytest.mark.parametrize("verb", Verb)
def test_the_holder_of_a_message_ended_by_an_operator_is_fenced(driver, mail, how, verb):
    held = put(driver, mail, State.LEASED)
    driver.alter(held.id, RUNNING[how])
    before = driver.counts(mail)

    answer = driver.act(verb, held, delay_ms=0, is_late_ok=True)

    assert isinstance(answer, LeaseLost)
    assert driver.counts(mail) == before


def test_either_a_completion_or_a_simultaneous_cancellation_counts(driver, mail):
    driver.send_many(mail, 40)
    held = driver.claim(mail, 40)
    refused = []

    def cancel_all():
        for message in reversed(held):
            try:
                driver.alter(message.id, RUNNING["cancel"])
            except MessageNotFound:
                refused.append(message.id)

    cancelling = threading.Thread(target=cancel_all)
    cancelling.start()
    answers = [driver.act(Verb.COMPLETE, message) for message in held]
    cancelling.join()

    lost = [m.id for m, answer in zip(held, answers, strict=True) if isinstance(answer, LeaseLost)]
    assert sorted([*lost, *refused]) == sorted(m.id for m in held), "each ended exactly once"
    assert {ending.id for ending in driver.endings(outcome=State.CANCELLED)} == set(lost)
    counts = driver.counts(mail)
    assert (counts.done_total, counts.cancelled_total) == (len(refused), len(lost))
    assert (counts.live, counts.is_balanced) == (0, True)


def test_cancelling_a_running_message_unblocks_the_next_of_its_group(driver):
    mail = driver.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)
    first, second = driver.send(mail, group="a"), driver.send(mail, group="a")
    driver.claim(mail)
    assert driver.claim(mail) == []

    driver.alter(first, RUNNING["cancel"])

    assert driver.claim_ids(mail) == [second]


def test_a_cancelled_running_message_frees_its_place_among_those_leased(driver):
    mail = driver.queue("mail", max_leased=1, lease_ms=MINUTE)
    first, second = driver.send(mail), driver.send(mail)
    driver.claim(mail)
    assert driver.claim(mail) == []

    driver.alter(first, RUNNING["cancel"])

    assert driver.claim_ids(mail) == [second]


def test_a_cancelled_running_message_frees_its_dedup_key(driver, mail):
    draft = {"dedup_key": "x", "dedup_until": DedupUntil.ENDED}
    first = driver.send(mail, **draft)
    driver.claim(mail)

    driver.alter(first, RUNNING["cancel"])

    assert driver.send(mail, **draft) != first


def test_a_buried_running_message_goes_to_the_dead_letter_queue(driver):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead", lease_ms=MINUTE)
    held = put(driver, mail, State.LEASED)

    driver.alter(held.id, RUNNING["bury"])

    assert driver.claim_ids(dead) == [held.id]
    assert isinstance(driver.act(Verb.COMPLETE, held, is_late_ok=True), LeaseLost)


@pytest.mark.parametrize("how", CHANGES)
def test_a_missing_row_cannot_be_changed(driver, mail, how):
    ended = put(driver, mail, State.LEASED)
    driver.complete(ended)

    for message_id in ("no-such-message", ended.id):
        with pytest.raises(MessageNotFound):
            driver.alter(message_id, CHANGES[how])


def test_a_buried_message_goes_to_the_dead_letter_queue_if_there_is_one(driver):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead")
    message = put(driver, mail, State.READY)

    changed = driver.alter(message.id, lambda m, _: lifecycle.bury(m, reason="no"))

    assert (changed.queue_no, changed.state) == (dead.queue_no, State.READY)
    letter = driver.get(message.id)
    expected = transfer.dead_letter(lifecycle.bury(message, reason="no"), dead, now=driver.now)
    assert letter == replace(expected, order_no=letter.order_no)
    assert driver.counts(mail) == Counts(sent_total=1, dead_total=1)
    assert driver.counts(dead) == Counts(ready=1, sent_total=1)


def test_without_its_dead_letter_queue_a_dead_message_rests_where_it_died(driver):
    mail = driver.queue("mail", dead_letter_queue="nowhere")
    message = put(driver, mail, State.READY)

    driver.alter(message.id, lambda m, _: lifecycle.bury(m))

    assert driver.browse_ids(mail, State.DEAD) == [message.id]


def test_a_dead_letter_keeps_its_id_its_body_and_its_labels(driver):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead")
    message_id = driver.send(mail, body='"b"', kind="k", tags=("t",), priority=3)

    driver.alter(message_id, lambda m, _: lifecycle.bury(m))

    [(letter, content)] = driver.submit_claim(dead).result().messages
    assert (letter.id, letter.kind, letter.tag1, letter.priority) == (message_id, "k", "t", 3)
    assert content.body == '"b"'
    assert letter.dead_from == mail.queue_no


def test_redriving_a_queue_revives_its_dead_messages_behind_the_others(driver, mail):
    first, second = put(driver, mail, State.DEAD), put(driver, mail, State.DEAD)
    waiting = put(driver, mail, State.READY)
    driver.clock.advance(seconds=1)

    assert redrive_all(driver, mail) == 2

    found = driver.get(first.id)
    expected = transfer.redrive(first, mail, now=driver.now)
    assert found == replace(expected, order_no=found.order_no)
    assert driver.claim_ids(mail) == [waiting.id, first.id, second.id]
    assert driver.counts(mail) == Counts(leased=3, sent_total=5, dead_total=2, claimed_total=5)


def test_redriving_a_dead_letter_queue_returns_messages_to_their_queues(driver):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead")
    post = driver.queue("post", dead_letter_queue="dead")
    ids = {}
    for queue in (mail, post):
        ids[queue.name] = driver.send(queue)
        driver.alter(ids[queue.name], lambda m, _: lifecycle.bury(m))
    ordinary = driver.send(dead)

    assert redrive_all(driver, dead) == 2

    assert driver.claim_ids(mail) == [ids["mail"]]
    assert driver.claim_ids(post) == [ids["post"]]
    assert driver.claim_ids(dead) == [ordinary]
    assert driver.get(ids["mail"]).dead_from is None
    assert driver.counts(dead) == Counts(leased=1, sent_total=3, cancelled_total=2, claimed_total=1)


def test_redriving_to_another_queue_brings_them_all_there(driver):
    dead, other = driver.queue("dead"), driver.queue("other")
    mail = driver.queue("mail", dead_letter_queue="dead")
    letter = driver.send(mail)
    driver.alter(letter, lambda m, _: lifecycle.bury(m))
    at_rest = driver.send(dead)
    driver.alter(at_rest, lambda m, _: lifecycle.bury(m))

    assert redrive_all(driver, dead, to=other) == 2

    assert sorted(driver.claim_ids(other)) == sorted([letter, at_rest])


def test_redriving_to_a_missing_queue_changes_nothing(driver, mail):
    message = put(driver, mail, State.DEAD)

    with pytest.raises(QueueNotFound):
        driver.write(lambda s: s.messages.redrive(mail.queue_no, to=999, limit=9, now=driver.now))

    assert driver.get(message.id) == message


def test_a_dead_letter_whose_queue_was_removed_is_revived_in_place(driver):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead")
    letter = driver.send(mail)
    driver.alter(letter, lambda m, _: lifecycle.bury(m))
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))

    assert redrive_all(driver, dead) == 1

    assert driver.get(letter).queue_no == dead.queue_no
    assert redrive_all(driver, dead) == 0


def test_a_redrive_takes_no_more_than_its_limit_oldest_first(driver, mail):
    ids = [put(driver, mail, State.DEAD).id for _ in range(3)]

    assert redrive_all(driver, mail, limit=2) == 2

    assert driver.claim_ids(mail) == ids[:2]
    assert redrive_all(driver, mail, limit=2) == 1
    assert redrive_all(driver, mail, limit=2) == 0


def test_a_redriven_message_has_all_its_attempts_before_it(driver):
    mail = driver.queue("mail", max_attempts=2)
    driver.send(mail)
    for _ in range(2):
        driver.act(Verb.FAIL, *driver.claim(mail), delay_ms=0)
    redrive_all(driver, mail)

    [held] = driver.claim(mail)
    answer = driver.act(Verb.FAIL, held, delay_ms=0)

    assert (held.attempts, held.lease_no) == (1, 3)
    assert answer.state is State.READY


def test_purging_cancels_everything_whatever_its_state(driver, mail):
    messages = [
        put(driver, mail, state) for state in (State.WAITING, State.LEASED, State.DEAD, State.READY)
    ]
    other = driver.queue("other")
    spared = driver.send(other)

    assert purge(driver, mail) == 4

    assert [driver.find(message.id) for message in messages] == [None] * 4
    assert driver.find(spared) is not None
    assert driver.counts(mail) == Counts(
        sent_total=4, dead_total=1, cancelled_total=3, claimed_total=2
    )
    reasons = {ending.reason for ending in driver.endings(outcome=State.CANCELLED)}
    assert reasons == {"purged"}


def test_purging_a_leased_message_ends_its_lease(driver, mail):
    held = put(driver, mail, State.LEASED)
    purge(driver, mail)

    assert isinstance(driver.act(Verb.COMPLETE, held), LeaseLost)
    assert isinstance(driver.act(Verb.FAIL, held), LeaseLost)


def test_a_purge_takes_no_more_than_its_limit(driver, mail):
    driver.send_many(mail, 5)

    assert [purge(driver, mail, limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_purged_queue_works_as_before(driver, mail):
    driver.send(mail)
    purge(driver, mail)

    message_id = driver.send(mail)

    assert driver.claim_ids(mail) == [message_id]
