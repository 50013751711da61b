"""Duties tidy what claims would bring back anyway."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def with_due(desk):
    return desk.read(lambda s: s.tidying.queues_with_due(now=desk.now))


def with_expired(desk):
    return desk.read(lambda s: s.tidying.queues_with_expired(now=desk.now))


def bring_back(desk, queue, limit=100):
    return desk.write(lambda s: s.tidying.bring_back(queue.queue_no, now=desk.now, limit=limit))


def expire(desk, queue, limit=100):
    return desk.write(lambda s: s.tidying.expire(queue.queue_no, now=desk.now, limit=limit))


def test_a_queue_with_a_delayed_message_has_something_due_at_its_instant(desk, mail):
    desk.queue("other")
    desk.send(mail, delay_ms=5)

    desk.clock.advance(ms=4)
    assert with_due(desk) == []

    desk.clock.advance(ms=1)
    assert with_due(desk) == [mail.queue_no]


def test_a_queue_with_a_lease_that_ran_out_has_something_due(desk, mail):
    desk.send(mail)
    desk.claim(mail)
    assert with_due(desk) == []

    desk.clock.advance(minutes=1)

    assert with_due(desk) == [mail.queue_no]


def test_what_is_brought_back_is_ready(desk, mail):
    delayed = desk.send(mail, delay_ms=5)
    lost = desk.send(mail)
    desk.claim(mail)
    desk.clock.advance(minutes=1)

    assert bring_back(desk, mail) == 2

    assert {desk.get(delayed).state, desk.get(lost).state} == {State.READY}
    assert with_due(desk) == []
    assert bring_back(desk, mail) == 0


def test_no_more_is_brought_back_than_asked_for_and_the_first_due_first(desk, mail):
    late, soon = desk.send(mail, delay_ms=2), desk.send(mail, delay_ms=1)
    desk.clock.advance(ms=2)

    assert bring_back(desk, mail, limit=1) == 1

    assert desk.get(soon).state is State.READY
    assert desk.get(late).state is State.WAITING


def test_a_paused_queue_is_tidied_all_the_same(desk, mail):
    desk.send(mail, delay_ms=5)
    desk.pause(mail)
    desk.clock.advance(ms=5)

    assert with_due(desk) == [mail.queue_no]
    assert bring_back(desk, mail) == 1


def test_a_queue_with_a_message_too_old_has_something_to_expire(desk, mail):
    desk.queue("other")
    desk.send(mail, expires_in_ms=5)
    desk.send(mail)

    desk.clock.advance(ms=4)
    assert with_expired(desk) == []

    desk.clock.advance(ms=1)
    assert with_expired(desk) == [mail.queue_no]
    assert expire(desk, mail) == 1
    assert with_expired(desk) == []
    assert desk.counts(mail).ready == 1


def test_no_more_expire_than_asked_for_and_the_oldest_first(desk, mail):
    young, old = desk.send(mail, expires_in_ms=2), desk.send(mail, expires_in_ms=1)
    desk.clock.advance(ms=2)

    assert expire(desk, mail, limit=1) == 1

    assert desk.find(old) is None
    assert desk.find(young) is not None


def test_what_somebody_works_on_does_not_expire(desk, mail):
    desk.send(mail, expires_in_ms=5)
    desk.claim(mail)
    desk.clock.advance(ms=5)

    assert with_expired(desk) == []
    assert expire(desk, mail) == 0


def test_a_removed_queue_has_nothing_to_tidy(desk, mail):
    desk.send(mail, delay_ms=5, expires_in_ms=9)
    desk.write(lambda s: s.queues.remove(mail.queue_no, now=desk.now))
    desk.clock.advance(seconds=1)

    assert with_due(desk) == []
    assert with_expired(desk) == []
