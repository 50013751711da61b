"""What operators do to messages: cancel, bury, reschedule, redrive, purge."""

import threading

import pytest
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost, MessageNotFound, QueueNotFound, WrongState
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.counts import Counts
from penstock.domain.queue.queue import DedupUntil, Ordering


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def put(desk, queue, state):
    """A message of the queue in that state."""
    message_id = desk.send(queue, delay_ms=5 if state is State.WAITING else 0)
    if state in (State.LEASED, State.DEAD):
        [held] = desk.claim(queue)
        if state is State.DEAD:
            desk.act(Verb.BURY, held, text="broken")
    return desk.get(message_id)


def redrive_all(desk, queue, *, to=None, limit=100):
    number = None if to is None else to.queue_no
    return desk.write(
        lambda s: s.messages.redrive(queue.queue_no, to=number, limit=limit, now=desk.now)
    )


def purge(desk, queue, limit=100):
    return desk.write(lambda s: s.messages.purge(queue.queue_no, limit=limit, now=desk.now))


@pytest.mark.parametrize("state", [State.WAITING, State.READY, State.DEAD])
def test_a_cancelled_message_leaves_the_queue(desk, mail, state):
    message = put(desk, mail, state)

    told = desk.alter(message.id, lambda m, _: lifecycle.cancel(m, reason="no"))

    assert told.state is State.CANCELLED
    assert desk.find(message.id) is None
    assert desk.counts(mail).live + desk.counts(mail).dead == 0


@pytest.mark.parametrize("state", [State.WAITING, State.READY])
def test_a_buried_message_rests_in_its_queue(desk, mail, state):
    message = put(desk, mail, state)

    told = desk.alter(message.id, lambda m, _: lifecycle.bury(m, reason="no"))

    assert told == desk.get(message.id) == lifecycle.bury(message, reason="no")
    assert desk.browse_ids(mail, State.DEAD) == [message.id]


@pytest.mark.parametrize("state", [State.WAITING, State.READY])
@pytest.mark.parametrize("delay_ms", [-5, 0, 5])
def test_a_rescheduled_message_has_its_new_due_date(desk, mail, state, delay_ms):
    message = put(desk, mail, state)
    due_at = desk.now + delay_ms

    desk.alter(message.id, lambda m, _: lifecycle.reschedule(m, due_at=due_at, now=desk.now))

    expected = lifecycle.reschedule(message, due_at=due_at, now=desk.now)
    assert desk.get(message.id) == expected


def test_a_message_brought_forward_can_be_claimed_at_once(desk, mail):
    message = put(desk, mail, State.WAITING)

    desk.alter(message.id, lambda m, _: lifecycle.reschedule(m, due_at=desk.now, now=desk.now))

    assert desk.claim_ids(mail) == [message.id]


CHANGES = {
    "cancel": lambda m, q: lifecycle.cancel(m),
    "bury": lambda m, q: lifecycle.bury(m),
    "reschedule": lambda m, q: lifecycle.reschedule(m, due_at=0, now=0),
    "redrive": lambda m, q: transfer.redrive(m, q, now=0),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_message_that_somebody_holds_is_left_alone(desk, mail, how):
    message = put(desk, mail, State.LEASED)

    with pytest.raises(WrongState):
        desk.alter(message.id, CHANGES[how])

    assert desk.get(message.id) == message


RUNNING = {
    "cancel": lambda m, q: lifecycle.cancel(m, reason="no", is_running_ok=True),
    "bury": lambda m, q: lifecycle.bury(m, reason="no", is_running_ok=True),
}
ENDS_IN = {"cancel": State.CANCELLED, "bury": State.DEAD}


@pytest.mark.parametrize("how", RUNNING)
def test_a_running_message_is_ended_on_request_and_history_names_its_worker(desk, mail, how):
    desk.send(mail)
    [held] = desk.claim(mail, claimed_by="worker-7")
    desk.clock.advance(seconds=3)

    answered = desk.alter(held.id, RUNNING[how])

    assert answered.state is ENDS_IN[how]
    [ending] = desk.endings(id=held.id)
    assert (ending.outcome, ending.reason) == (ENDS_IN[how], "no")
    assert (ending.leased_by, ending.leased_at) == ("worker-7", held.leased_at)
    assert (ending.finished_at, ending.attempts) == (desk.now, 1)
    assert desk.counts(mail).leased == 0


@pytest.mark.parametrize("how", RUNNING)
@pytest.mark.parametrize("verb", Verb)
def test_the_holder_of_a_message_ended_by_an_operator_is_fenced(desk, mail, how, verb):
    held = put(desk, mail, State.LEASED)
    desk.alter(held.id, RUNNING[how])
    before = desk.counts(mail)

    answer = desk.act(verb, held, delay_ms=0, is_late_ok=True)

    assert isinstance(answer, LeaseLost)
    assert desk.counts(mail) == before


def test_of_a_completion_and_a_cancellation_at_the_same_time_one_counts(desk, mail):
    desk.send_many(mail, 40)
    held = desk.claim(mail, 40)
    refused = []

    def cancel_all():
        for message in reversed(held):
            try:
                desk.alter(message.id, RUNNING["cancel"])
            except MessageNotFound:
                refused.append(message.id)

    cancelling = threading.Thread(target=cancel_all)
    cancelling.start()
    answers = [desk.act(Verb.COMPLETE, message) for message in held]
    cancelling.join()

    lost = [m.id for m, answer in zip(held, answers, strict=True) if isinstance(answer, LeaseLost)]
    assert sorted([*lost, *refused]) == sorted(m.id for m in held), "each is one's and not both's"
    assert {ending.id for ending in desk.endings(outcome=State.CANCELLED)} == set(lost)
    counts = desk.counts(mail)
    assert (counts.done_total, counts.cancelled_total) == (len(refused), len(lost))
    assert (counts.live, counts.is_balanced) == (0, True)


def test_a_cancelled_running_message_lets_the_next_of_its_group_come_forward(desk):
    mail = desk.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)
    first, second = desk.send(mail, group="a"), desk.send(mail, group="a")
    desk.claim(mail)
    assert desk.claim(mail) == []

    desk.alter(first, RUNNING["cancel"])

    assert desk.claim_ids(mail) == [second]


def test_a_cancelled_running_message_frees_its_place_among_those_leased(desk):
    mail = desk.queue("mail", max_leased=1, lease_ms=MINUTE)
    first, second = desk.send(mail), desk.send(mail)
    desk.claim(mail)
    assert desk.claim(mail) == []

    desk.alter(first, RUNNING["cancel"])

    assert desk.claim_ids(mail) == [second]


def test_a_cancelled_running_message_frees_its_dedup_key(desk, mail):
    draft = {"dedup_key": "x", "dedup_until": DedupUntil.ENDED}
    first = desk.send(mail, **draft)
    desk.claim(mail)

    desk.alter(first, RUNNING["cancel"])

    assert desk.send(mail, **draft) != first


def test_a_buried_running_message_goes_to_the_dead_letter_queue(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead", lease_ms=MINUTE)
    held = put(desk, mail, State.LEASED)

    desk.alter(held.id, RUNNING["bury"])

    assert desk.claim_ids(dead) == [held.id]
    assert isinstance(desk.act(Verb.COMPLETE, held, is_late_ok=True), LeaseLost)


@pytest.mark.parametrize("how", CHANGES)
def test_what_is_not_there_cannot_be_changed(desk, mail, how):
    ended = put(desk, mail, State.LEASED)
    desk.complete(ended)

    for message_id in ("no-such-message", ended.id):
        with pytest.raises(MessageNotFound):
            desk.alter(message_id, CHANGES[how])


def test_a_buried_message_goes_to_the_dead_letter_queue_if_there_is_one(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead")
    message = put(desk, mail, State.READY)

    told = desk.alter(message.id, lambda m, _: lifecycle.bury(m, reason="no"))

    assert (told.queue_no, told.state) == (dead.queue_no, State.READY)
    letter = desk.get(message.id)
    expected = transfer.dead_letter(lifecycle.bury(message, reason="no"), dead, now=desk.now)
    assert letter == replace(expected, order_no=letter.order_no)
    assert desk.counts(mail) == Counts(sent_total=1, dead_total=1)
    assert desk.counts(dead) == Counts(ready=1, sent_total=1)


def test_without_its_dead_letter_queue_a_dead_message_rests_where_it_died(desk):
    mail = desk.queue("mail", dead_letter_queue="nowhere")
    message = put(desk, mail, State.READY)

    desk.alter(message.id, lambda m, _: lifecycle.bury(m))

    assert desk.browse_ids(mail, State.DEAD) == [message.id]


def test_a_dead_letter_keeps_its_id_its_body_and_its_labels(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead")
    message_id = desk.send(mail, body='"b"', kind="k", tags=("t",), priority=3)

    desk.alter(message_id, lambda m, _: lifecycle.bury(m))

    [(letter, content)] = desk.submit_claim(dead).result().messages
    assert (letter.id, letter.kind, letter.tag1, letter.priority) == (message_id, "k", "t", 3)
    assert content.body == '"b"'
    assert letter.dead_from == mail.queue_no


def test_redriving_a_queue_gives_its_dead_a_new_life_behind_all_that_wait(desk, mail):
    first, second = put(desk, mail, State.DEAD), put(desk, mail, State.DEAD)
    waiting = put(desk, mail, State.READY)
    desk.clock.advance(seconds=1)

    assert redrive_all(desk, mail) == 2

    found = desk.get(first.id)
    expected = transfer.redrive(first, mail, now=desk.now)
    assert found == replace(expected, order_no=found.order_no)
    assert desk.claim_ids(mail) == [waiting.id, first.id, second.id]
    assert desk.counts(mail) == Counts(leased=3, sent_total=5, dead_total=2, claimed_total=5)


def test_redriving_a_dead_letter_queue_brings_the_letters_home(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead")
    post = desk.queue("post", dead_letter_queue="dead")
    ids = {}
    for queue in (mail, post):
        ids[queue.name] = desk.send(queue)
        desk.alter(ids[queue.name], lambda m, _: lifecycle.bury(m))
    ordinary = desk.send(dead)

    assert redrive_all(desk, dead) == 2

    assert desk.claim_ids(mail) == [ids["mail"]]
    assert desk.claim_ids(post) == [ids["post"]]
    assert desk.claim_ids(dead) == [ordinary]
    assert desk.get(ids["mail"]).dead_from is None
    assert desk.counts(dead) == Counts(leased=1, sent_total=3, cancelled_total=2, claimed_total=1)


def test_redriving_to_another_queue_brings_them_all_there(desk):
    dead, other = desk.queue("dead"), desk.queue("other")
    mail = desk.queue("mail", dead_letter_queue="dead")
    letter = desk.send(mail)
    desk.alter(letter, lambda m, _: lifecycle.bury(m))
    at_rest = desk.send(dead)
    desk.alter(at_rest, lambda m, _: lifecycle.bury(m))

    assert redrive_all(desk, dead, to=other) == 2

    assert sorted(desk.claim_ids(other)) == sorted([letter, at_rest])


def test_redriving_to_a_queue_that_is_not_there_changes_nothing(desk, mail):
    message = put(desk, mail, State.DEAD)

    with pytest.raises(QueueNotFound):
        desk.write(lambda s: s.messages.redrive(mail.queue_no, to=999, limit=9, now=desk.now))

    assert desk.get(message.id) == message


def test_a_dead_letter_whose_home_is_gone_gets_its_new_life_where_it_is(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead")
    letter = desk.send(mail)
    desk.alter(letter, lambda m, _: lifecycle.bury(m))
    desk.write(lambda s: s.queues.remove(mail.queue_no, now=desk.now))

    assert redrive_all(desk, dead) == 1

    assert desk.get(letter).queue_no == dead.queue_no
    assert redrive_all(desk, dead) == 0


def test_a_redrive_takes_no_more_than_its_limit_oldest_first(desk, mail):
    ids = [put(desk, mail, State.DEAD).id for _ in range(3)]

    assert redrive_all(desk, mail, limit=2) == 2

    assert desk.claim_ids(mail) == ids[:2]
    assert redrive_all(desk, mail, limit=2) == 1
    assert redrive_all(desk, mail, limit=2) == 0


def test_a_redriven_message_has_all_its_attempts_before_it(desk):
    mail = desk.queue("mail", max_attempts=2)
    desk.send(mail)
    for _ in range(2):
        desk.act(Verb.FAIL, *desk.claim(mail), delay_ms=0)
    redrive_all(desk, mail)

    [held] = desk.claim(mail)
    answer = desk.act(Verb.FAIL, held, delay_ms=0)

    assert (held.attempts, held.lease_no) == (1, 3)
    assert answer.state is State.READY


def test_purging_cancels_everything_whatever_its_state(desk, mail):
    messages = [
        put(desk, mail, state) for state in (State.WAITING, State.LEASED, State.DEAD, State.READY)
    ]
    other = desk.queue("other")
    spared = desk.send(other)

    assert purge(desk, mail) == 4

    assert [desk.find(message.id) for message in messages] == [None] * 4
    assert desk.find(spared) is not None
    assert desk.counts(mail) == Counts(
        sent_total=4, dead_total=1, cancelled_total=3, claimed_total=2
    )
    reasons = {ending.reason for ending in desk.endings(outcome=State.CANCELLED)}
    assert reasons == {"purged"}


def test_whoever_held_a_purged_message_has_lost_its_lease(desk, mail):
    held = put(desk, mail, State.LEASED)
    purge(desk, mail)

    assert isinstance(desk.act(Verb.COMPLETE, held), LeaseLost)
    assert isinstance(desk.act(Verb.FAIL, held), LeaseLost)


def test_a_purge_takes_no_more_than_its_limit(desk, mail):
    desk.send_many(mail, 5)

    assert [purge(desk, mail, limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_purged_queue_goes_on_as_before(desk, mail):
    desk.send(mail)
    purge(desk, mail)

    message_id = desk.send(mail)

    assert desk.claim_ids(mail) == [message_id]
