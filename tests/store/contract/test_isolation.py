"""Requests that share a transaction: a failure affects only the request that failed."""

import pytest

from penstock.domain.errors import PenstockError, QueueExists, QueueNotFound
from penstock.domain.message.lifecycle import State
from tests.factories import some_settings


class Boom(Exception):
    pass


def fail_after(what):
    """A write that does something and then breaks."""

    def do(session):
        what(session)
        raise Boom

    return do


def test_a_write_that_fails_affects_only_its_caller(driver, backend, caplog):
    mail = driver.queue()

    with driver.together():
        before = driver.submit_send(mail)
        broken = driver.store.write(fail_after(lambda s: None))
        after = driver.submit_claim(mail)

    assert before.result()
    assert len(after.result().messages) == 1
    with pytest.raises(PenstockError, match="Boom") as refusal:
        broken.result()
    assert isinstance(refusal.value.__cause__, Boom)
    # With concurrent writers, a write has a transaction of its own anyway.
    expected_log = (
        ["a batch failed; running its requests one by one"] if backend == "sqlite" else []
    )
    assert [
        record.getMessage() for record in caplog.records if record.name == "penstock.store"
    ] == expected_log
    caplog.clear()


def test_a_refusal_reaches_its_caller_as_it_is(driver):
    driver.queue("mail")

    with driver.together():
        refused = driver.store.write(
            lambda s: s.queues.add("mail", some_settings(), now=driver.now)
        )
        fine = driver.store.write(lambda s: s.queues.find("mail"))

    assert fine.result().name == "mail"
    with pytest.raises(QueueExists):
        refused.result()


def test_a_write_that_fails_leaves_no_trace(driver):
    mail = driver.queue()
    message = driver.get(driver.send(mail))
    counts = driver.counts(mail)

    def everything(session):
        session.queues.add("other", some_settings(), now=driver.now)
        session.messages.purge(mail.queue_no, limit=10, now=driver.now)
        session.queues.change(mail.queue_no, is_paused=True, now=driver.now)

    with pytest.raises(PenstockError):
        driver.write(fail_after(everything))

    assert driver.get(message.id) == message
    assert driver.counts(mail) == counts
    assert driver.read(lambda s: s.queues.find("other")) is None
    assert driver.read(lambda s: s.queues.get(mail.queue_no)) == mail
    assert driver.endings() == []
    assert driver.claim_ids(mail) == [message.id]


def test_settings_of_a_rolled_back_queue_are_not_reused(driver):
    with pytest.raises(PenstockError):
        driver.write(
            fail_after(lambda s: s.queues.add("a", some_settings(lease_ms=1), now=driver.now))
        )

    made = driver.queue("b", lease_ms=2)

    assert (made.name, made.settings.lease_ms) == ("b", 2)
    driver.send(made)
    assert driver.claim(made)[0].due_at == driver.now + 2


def test_rolled_back_settings_are_not_used(driver):
    mail = driver.queue(lease_ms=1)
    with pytest.raises(PenstockError):
        driver.write(
            fail_after(
                lambda s: s.queues.change(
                    mail.queue_no, settings=some_settings(lease_ms=2), now=driver.now
                )
            )
        )

    changed = driver.change(mail, lease_ms=3)

    assert changed.settings.lease_ms == 3
    driver.send(mail)
    assert driver.claim(mail)[0].due_at == driver.now + 3


def test_a_rolled_back_day_is_created_again(driver):
    mail = driver.queue()
    with pytest.raises(PenstockError):
        driver.write(fail_after(lambda s: s.maintenance.prepare_days(now=driver.now)))

    message_id = driver.send(mail)

    assert driver.claim_ids(mail) == [message_id]


def test_numbers_of_a_rolled_back_send_do_not_disturb_the_order(driver):
    mail = driver.queue(redelivery="back")
    first = driver.send(mail)
    with pytest.raises(PenstockError):
        driver.write(
            fail_after(lambda s: s.messages.purge(mail.queue_no, limit=10, now=driver.now))
        )
    second = driver.send(mail)

    assert driver.claim_ids(mail) == [first, second]


def test_a_change_that_is_refused_half_way_leaves_no_trace(driver):
    mail = driver.queue()
    driver.send_many(mail, 3)

    def purge_and_redrive(session):
        session.messages.purge(mail.queue_no, limit=2, now=driver.now)
        session.queues.get(12345)

    with pytest.raises(QueueNotFound):
        driver.write(purge_and_redrive)

    assert len(driver.browse(mail, State.READY)) == 3


def test_reads_see_what_was_committed_and_nothing_half_done(driver):
    mail = driver.queue()

    with driver.together():
        sent = driver.submit_send(mail)
        during = driver.counts(mail)
    sent.result()

    assert during.ready == 0
    assert driver.counts(mail).ready == 1


def test_a_read_that_fails_affects_only_its_caller(driver):
    mail = driver.queue()

    def broken(_):
        raise Boom

    with pytest.raises(PenstockError, match="Boom"):
        driver.read(broken)

    assert driver.read(lambda s: s.queues.find("mail")) == mail


def test_a_read_sees_one_moment_over_all_its_queries(driver):
    mail = driver.queue()

    def look_twice(session):
        before = session.queues.counts([mail.queue_no])[mail.queue_no]
        driver.send(mail)
        after = session.queues.counts([mail.queue_no])[mail.queue_no]
        return before, after

    before, after = driver.read(look_twice)

    assert before == after
    assert driver.counts(mail).ready == 1
