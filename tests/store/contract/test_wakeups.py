"""Wake-ups: after a commit, how many messages became ready in which queues."""

import pytest

from penstock.domain.errors import PenstockError
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering


@pytest.fixture
def heard(desk):
    """What the store has told since the last look."""
    told = []
    desk.store.listen(lambda woken: told.append(dict(woken)))

    def look():
        seen = dict(pair for woken in told for pair in woken.items())
        told.clear()
        return seen

    return look


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def test_a_send_tells_how_many_are_ready(desk, mail, heard):
    desk.send_many(mail, 3)

    assert heard() == {mail.queue_no: 3}


def test_a_delayed_message_tells_that_there_is_a_new_due_date(desk, mail, heard):
    desk.send(mail, delay_ms=5)

    assert heard() == {mail.queue_no: 0}


@pytest.mark.parametrize(
    ("verb", "delay_ms", "count"),
    [(Verb.RELEASE, 0, 1), (Verb.RELEASE, 5, 0), (Verb.FAIL, 0, 1), (Verb.SNOOZE, 5, 0)],
)
def test_what_is_given_back_is_told(desk, mail, heard, verb, delay_ms, count):
    desk.send(mail)
    [held] = desk.claim(mail)
    heard()

    desk.act(verb, held, delay_ms=delay_ms)

    assert heard() == {mail.queue_no: count}


def test_the_next_of_a_group_is_told_when_a_whole_run_before_it_has_ended(desk, heard):
    mail = desk.queue("mail", ordering=Ordering.GROUP)
    desk.send_many(mail, 3, group="a")
    first, second = desk.claim(mail, 2, in_a_row=True)
    heard()

    desk.complete(first)
    assert heard() == {}

    desk.complete(second)
    assert heard() == {mail.queue_no: 1}


def test_the_next_of_a_group_is_told(desk, heard):
    mail = desk.queue("mail", ordering=Ordering.GROUP)
    desk.send_many(mail, 2, group="a")
    [held] = desk.claim(mail)
    heard()

    desk.complete(held)

    assert heard() == {mail.queue_no: 1}


def test_a_dead_letter_is_told_to_its_new_queue(desk, heard):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead")
    message_id = desk.send(mail)
    heard()

    desk.alter(message_id, lambda m, _: lifecycle.bury(m))

    assert heard()[dead.queue_no] == 1


def test_resuming_a_queue_is_told(desk, mail, heard):
    desk.pause(mail)
    heard()

    desk.pause(mail, is_paused=False)

    assert heard()[mail.queue_no] > 0


def test_removing_a_queue_is_told_to_all_who_wait_there(desk, mail, heard):
    desk.write(lambda s: s.queues.remove(mail.queue_no, now=desk.now))

    assert heard()[mail.queue_no] > 1_000


def test_what_was_not_committed_is_not_told(desk, mail, heard):
    def purge_and_break(session):
        session.queues.change(mail.queue_no, is_paused=True)
        raise ValueError

    with pytest.raises(PenstockError):
        desk.write(purge_and_break)

    assert heard() == {}


def test_a_listener_that_breaks_disturbs_nobody(desk, mail, heard, caplog):
    def broken(_):
        raise ValueError

    desk.store.listen(broken)

    desk.send(mail)

    assert heard() == {mail.queue_no: 1}
    assert len(desk.claim(mail)) == 1
    assert {
        record.getMessage() for record in caplog.records if record.name == "penstock.store"
    } == {"a listener of wake-ups failed"}
    caplog.clear()
