"""Wake-ups: after a commit, how many messages became ready in which queues."""

import pytest

from penstock.domain.errors import PenstockError
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering


@pytest.fixture
def heard(driver):
    """Wake-ups of the store since the last call."""
    received = []
    driver.store.listen(lambda woken: received.append(dict(woken)))

    def look():
        seen = dict(pair for woken in received for pair in woken.items())
        received.clear()
        return seen

    return look


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def test_a_send_announces_how_many_messages_are_ready(driver, mail, heard):
    driver.send_many(mail, 3)

    assert heard() == {mail.queue_no: 3}


def test_a_delayed_message_announces_a_new_due_date(driver, mail, heard):
    driver.send(mail, delay_ms=5)

    assert heard() == {mail.queue_no: 0}


@pytest.mark.parametrize(
    ("verb", "delay_ms", "count"),
    [(Verb.RELEASE, 0, 1), (Verb.RELEASE, 5, 0), (Verb.FAIL, 0, 1), (Verb.SNOOZE, 5, 0)],
)
def test_a_released_message_is_announced(driver, mail, heard, verb, delay_ms, count):
    driver.send(mail)
    [held] = driver.claim(mail)
    heard()

    driver.act(verb, held, delay_ms=delay_ms)

    assert heard() == {mail.queue_no: count}


def test_the_next_of_a_group_is_announced_when_the_run_before_it_has_ended(driver, heard):
    mail = driver.queue("mail", ordering=Ordering.GROUP)
    driver.send_many(mail, 3, group="a")
    first, second = driver.claim(mail, 2, in_a_row=True)
    heard()

    driver.complete(first)
    assert heard() == {}

    driver.complete(second)
    assert heard() == {mail.queue_no: 1}


def test_the_next_of_a_group_is_announced(driver, heard):
    mail = driver.queue("mail", ordering=Ordering.GROUP)
    driver.send_many(mail, 2, group="a")
    [held] = driver.claim(mail)
    heard()

    driver.complete(held)

    assert heard() == {mail.queue_no: 1}


def test_a_dead_letter_is_announced_in_its_new_queue(driver, heard):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead")
    message_id = driver.send(mail)
    heard()

    driver.alter(message_id, lambda m, _: lifecycle.bury(m))

    assert heard()[dead.queue_no] == 1


def test_resuming_a_queue_is_announced(driver, mail, heard):
    driver.pause(mail)
    heard()

    driver.pause(mail, is_paused=False)

    assert heard()[mail.queue_no] > 0


def test_removing_a_queue_wakes_all_claims_that_wait_there(driver, mail, heard):
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))

    assert heard()[mail.queue_no] > 1_000


def test_a_rolled_back_change_is_not_announced(driver, mail, heard):
    def purge_and_break(session):
        session.queues.change(mail.queue_no, is_paused=True)
        raise ValueError

    with pytest.raises(PenstockError):
        driver.write(purge_and_break)

    assert heard() == {}


def test_a_listener_that_fails_does_not_affect_the_others(driver, mail, heard, caplog):
    def broken(_):
        raise ValueError

    driver.store.listen(broken)

    driver.send(mail)

    assert heard() == {mail.queue_no: 1}
    assert len(driver.claim(mail)) == 1
    assert {
        record.getMessage() for record in caplog.records if record.name == "penstock.store"
    } == {"a listener of wake-ups failed"}
    caplog.clear()
