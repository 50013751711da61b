"""Wake-ups: after a commit, how many messages became ready in which queues."""

import pytest

from penstock.domain.errors import PenstockError
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering


@pytest.fixture
def wakeups(driver):
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


def test_a_send_announces_how_many_messages_are_ready(driver, mail, wakeups):
    driver.send_many(mail, 3)

    assert wakeups() == {mail.queue_no: 3}


def test_a_delayed_message_announces_a_new_due_date(driver, mail, wakeups):
    driver.send(mail, delay_ms=5)

    assert wakeups() == {mail.queue_no: 0}


@pytest.mark.parametrize(
    ("verb", "delay_ms", "count"),
    [(Verb.RELEASE, 0, 1), (Verb.RELEASE, 5, 0), (Verb.FAIL, 0, 1), (Verb.SNOOZE, 5, 0)],
)
def test_a_released_message_is_announced(driver, mail, wakeups, verb, delay_ms, count):
    driver.send(mail)
    [held] = driver.claim(mail)
    wakeups()

    driver.act(verb, held, delay_ms=delay_ms)

    assert wakeups() == {mail.queue_no: count}


def test_the_next_of_a_group_is_announced_when_the_run_before_it_has_ended(driver, wakeups):
    mail = driver.queue("mail", ordering=Ordering.GROUP)
    driver.send_many(mail, 3, group="a")
    first, second = driver.claim(mail, 2, in_a_row=True)
    wakeups()

    driver.complete(first)
    assert wakeups() == {}

    driver.complete(second)
    assert wakeups() == {mail.queue_no: 1}


def test_the_next_of_a_group_is_announced(driver, wakeups):
    mail = driver.queue("mail", ordering=Ordering.GROUP)
    driver.send_many(mail, 2, group="a")
    [held] = driver.claim(mail)
    wakeups()

    driver.complete(held)

    assert wakeups() == {mail.queue_no: 1}


def test_a_dead_letter_is_announced_in_its_new_queue(driver, wakeups):
    dead = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead")
    message_id = driver.send(mail)
    wakeups()

    driver.alter(message_id, lambda m, _: lifecycle.bury(m))

    assert wakeups()[dead.queue_no] == 1


def test_resuming_a_queue_is_announced(driver, mail, wakeups):
    driver.pause(mail)
    wakeups()

    driver.pause(mail, is_paused=False)

    assert wakeups()[mail.queue_no] > 0


def test_removing_a_queue_wakes_all_claims_that_wait_there(driver, mail, wakeups):
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))

    assert wakeups()[mail.queue_no] > 1_000


def test_a_rolled_back_change_is_not_announced(driver, mail, wakeups):
    def purge_and_break(session):
        session.queues.change(mail.queue_no, is_paused=True)
        raise ValueError

    with pytest.raises(PenstockError):
        driver.write(purge_and_break)

    assert wakeups() == {}


def test_a_listener_that_fails_does_not_affect_the_others(driver, mail, wakeups, caplog):
    def broken(_):
        raise ValueError

    driver.store.listen(broken)

    driver.send(mail)

    assert wakeups() == {mail.queue_no: 1}
    assert len(driver.claim(mail)) == 1
    assert {
        record.getMessage() for record in caplog.records if record.name == "penstock.store"
    } == {"a listener of wake-ups failed"}
    caplog.clear()
