"""One transaction for many: what one of them breaks hits only the one who broke it."""

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


def test_a_write_that_breaks_hits_only_its_caller(desk, backend, caplog):
    mail = desk.queue()

    with desk.together():
        before = desk.submit_send(mail)
        broken = desk.store.write(fail_after(lambda s: None))
        after = desk.submit_claim(mail)

    assert before.result()
    assert len(after.result().messages) == 1
    with pytest.raises(PenstockError, match="Boom") as refusal:
        broken.result()
    assert isinstance(refusal.value.__cause__, Boom)
    # Where several write at the same time, a write has a transaction of its own anyway.
    told = ["a batch broke and is run one by one"] if backend == "sqlite" else []
    assert [
        record.getMessage() for record in caplog.records if record.name == "penstock.store"
    ] == told
    caplog.clear()


def test_a_refusal_reaches_its_caller_as_it_is(desk):
    desk.queue("mail")

    with desk.together():
        refused = desk.store.write(lambda s: s.queues.add("mail", some_settings(), now=desk.now))
        fine = desk.store.write(lambda s: s.queues.find("mail"))

    assert fine.result().name == "mail"
    with pytest.raises(QueueExists):
        refused.result()


def test_a_write_that_breaks_leaves_no_trace(desk):
    mail = desk.queue()
    message = desk.get(desk.send(mail))
    counts = desk.counts(mail)

    def everything(session):
        session.queues.add("other", some_settings(), now=desk.now)
        session.messages.purge(mail.queue_no, limit=10, now=desk.now)
        session.queues.change(mail.queue_no, is_paused=True, now=desk.now)

    with pytest.raises(PenstockError):
        desk.write(fail_after(everything))

    assert desk.get(message.id) == message
    assert desk.counts(mail) == counts
    assert desk.read(lambda s: s.queues.find("other")) is None
    assert desk.read(lambda s: s.queues.get(mail.queue_no)) == mail
    assert desk.endings() == []
    assert desk.claim_ids(mail) == [message.id]


def test_a_queue_made_in_vain_leaves_its_settings_to_nobody(desk):
    with pytest.raises(PenstockError):
        desk.write(fail_after(lambda s: s.queues.add("a", some_settings(lease_ms=1), now=desk.now)))

    made = desk.queue("b", lease_ms=2)

    assert (made.name, made.settings.lease_ms) == ("b", 2)
    desk.send(made)
    assert desk.claim(made)[0].due_at == desk.now + 2


def test_settings_changed_in_vain_are_used_by_nobody(desk):
    mail = desk.queue(lease_ms=1)
    with pytest.raises(PenstockError):
        desk.write(
            fail_after(
                lambda s: s.queues.change(
                    mail.queue_no, settings=some_settings(lease_ms=2), now=desk.now
                )
            )
        )

    changed = desk.change(mail, lease_ms=3)

    assert changed.settings.lease_ms == 3
    desk.send(mail)
    assert desk.claim(mail)[0].due_at == desk.now + 3


def test_a_day_begun_in_vain_is_begun_again(desk):
    mail = desk.queue()
    with pytest.raises(PenstockError):
        desk.write(fail_after(lambda s: s.tidying.prepare_days(now=desk.now)))

    message_id = desk.send(mail)

    assert desk.claim_ids(mail) == [message_id]


def test_numbers_taken_in_vain_do_not_disturb_the_order(desk):
    mail = desk.queue(redelivery="back")
    first = desk.send(mail)
    with pytest.raises(PenstockError):
        desk.write(fail_after(lambda s: s.messages.purge(mail.queue_no, limit=10, now=desk.now)))
    second = desk.send(mail)

    assert desk.claim_ids(mail) == [first, second]


def test_a_change_that_is_refused_half_way_leaves_no_trace(desk):
    mail = desk.queue()
    desk.send_many(mail, 3)

    def purge_and_redrive(session):
        session.messages.purge(mail.queue_no, limit=2, now=desk.now)
        session.queues.get(12345)

    with pytest.raises(QueueNotFound):
        desk.write(purge_and_redrive)

    assert len(desk.browse(mail, State.READY)) == 3


def test_reads_see_what_was_committed_and_nothing_half_done(desk):
    mail = desk.queue()

    with desk.together():
        sent = desk.submit_send(mail)
        during = desk.counts(mail)
    sent.result()

    assert during.ready == 0
    assert desk.counts(mail).ready == 1


def test_a_read_that_breaks_hits_only_its_caller(desk):
    mail = desk.queue()

    def broken(_):
        raise Boom

    with pytest.raises(PenstockError, match="Boom"):
        desk.read(broken)

    assert desk.read(lambda s: s.queues.find("mail")) == mail


def test_a_read_sees_one_moment_over_all_its_queries(desk):
    mail = desk.queue()

    def look_twice(session):
        before = session.queues.counts([mail.queue_no])[mail.queue_no]
        desk.send(mail)
        after = session.queues.counts([mail.queue_no])[mail.queue_no]
        return before, after

    before, after = desk.read(look_twice)

    assert before == after
    assert desk.counts(mail).ready == 1
