"""Queues: created, changed, removed, created again, listed and counted."""

import pytest

from penstock.domain.errors import QueueExists, QueueNotFound
from penstock.domain.message.lifecycle import State
from penstock.domain.message.retry import Exponential, Listed
from penstock.domain.queue.queue import Counts, Queue, Redelivery
from penstock.ports.store import Claim
from tests.factories import a_new_message, some_settings


def remove(driver, queue):
    driver.write(lambda s: s.queues.remove(queue.queue_no, now=driver.now))


def page(driver, prefix="", after="", limit=100):
    found = driver.read(lambda s: s.queues.page(prefix=prefix, after=after, limit=limit))
    return [queue.name for queue in found]


def test_a_new_queue_is_what_was_asked_for(driver):
    made = driver.queue("mail", lease_ms=5, redelivery=Redelivery.BACK)

    assert made == Queue(
        queue_no=made.queue_no,
        name="mail",
        settings=some_settings(lease_ms=5, redelivery=Redelivery.BACK),
        created_at=driver.now,
        changed_at=driver.now,
        is_paused=False,
        version=1,
    )


def test_a_queue_is_found_by_its_name_and_by_its_number(driver):
    made = driver.queue("mail")

    assert driver.read(lambda s: s.queues.find("mail")) == made
    assert driver.read(lambda s: s.queues.get(made.queue_no)) == made


def test_names_are_taken_as_they_are_written(driver):
    driver.queue("mail")

    assert driver.read(lambda s: s.queues.find("Mail")) is None


def test_an_unknown_queue_is_not_found(driver):
    assert driver.read(lambda s: s.queues.find("mail")) is None
    with pytest.raises(QueueNotFound):
        driver.read(lambda s: s.queues.get(12345))


def test_a_name_is_unique(driver):
    made = driver.queue("mail", lease_ms=5)

    with pytest.raises(QueueExists):
        driver.queue("mail", lease_ms=6)

    assert driver.read(lambda s: s.queues.find("mail")) == made


@pytest.mark.parametrize("backoff", [Listed((1, 2)), Exponential(first_ms=3)])
def test_new_settings_replace_the_old_ones_and_raise_the_version(driver, backoff):
    made = driver.queue("mail", lease_ms=5)
    driver.clock.advance(ms=3)

    changed = driver.change(made, delay_ms=7, backoff=backoff)

    assert (changed.created_at, changed.changed_at) == (made.created_at, made.created_at + 3)
    assert changed.settings == some_settings(delay_ms=7, backoff=backoff)
    assert (changed.version, changed.queue_no, changed.is_paused) == (2, made.queue_no, False)
    assert driver.read(lambda s: s.queues.find("mail")) == changed


def test_pausing_and_resuming_leave_the_settings(driver):
    made = driver.queue("mail", lease_ms=5)

    paused = driver.pause(made)
    resumed = driver.pause(made, is_paused=False)

    assert (paused.is_paused, paused.version, paused.settings) == (True, 2, made.settings)
    assert (resumed.is_paused, resumed.version, resumed.settings) == (False, 3, made.settings)


def test_a_missing_row_cannot_be_changed(driver):
    with pytest.raises(QueueNotFound):
        driver.write(lambda s: s.queues.change(12345, is_paused=True, now=driver.now))


def test_the_last_removal_of_a_queue_by_name_is_known(driver):
    def removed_at() -> int | None:
        return driver.read(lambda s: s.queues.removed_at("mail"))

    made = driver.queue("mail")
    assert removed_at() is None

    driver.write(lambda s: s.queues.remove(made.queue_no, now=driver.now))
    driver.queue("mail")

    assert removed_at() == driver.now


def test_a_removed_queue_is_not_found_by_any_request(driver):
    made = driver.queue("mail")

    remove(driver, made)

    assert driver.read(lambda s: s.queues.find("mail")) is None
    assert page(driver) == []
    assert driver.read(lambda s: s.queues.count()) == 0
    with pytest.raises(QueueNotFound):
        driver.read(lambda s: s.queues.get(made.queue_no))
    with pytest.raises(QueueNotFound):
        driver.write(lambda s: s.queues.change(made.queue_no, is_paused=True, now=driver.now))
    with pytest.raises(QueueNotFound):
        driver.store.claim(Claim(queue_no=made.queue_no, now=driver.now)).result()
    [answer] = driver.store.send([a_new_message(made, now=driver.now)]).result()
    assert isinstance(answer, QueueNotFound)


def test_a_queue_made_again_under_the_same_name_is_another_queue(driver):
    old = driver.queue("mail", lease_ms=5)
    driver.send(old, dedup_key="once")
    driver.pause(old)
    driver.write(lambda s: s.messages.purge(old.queue_no, limit=10, now=driver.now))
    remove(driver, old)

    new = driver.queue("mail")

    assert new.queue_no > old.queue_no
    assert (new.settings, new.is_paused) == (some_settings(), False)
    assert driver.counts(new) == Counts()
    assert driver.send(new, dedup_key="once")


def test_history_remembers_a_removed_queue_by_its_name(driver):
    old = driver.queue("mail")
    driver.send(old)
    driver.complete(*driver.claim(old))
    remove(driver, old)
    driver.clock.advance(seconds=1)
    new = driver.queue("mail")
    driver.send(new)
    driver.complete(*driver.claim(new))
    driver.queue("post")

    endings = driver.endings(queue="mail")

    assert [(e.queue, e.outcome) for e in endings] == [("mail", State.DONE)] * 2
    assert driver.endings(queue="post") == []
    assert driver.counts(old).done_total == 1


def test_queues_are_listed_by_name_page_by_page(driver):
    for name in ("b", "a.1", "c", "a.2", "a"):
        driver.queue(name)

    assert page(driver) == ["a", "a.1", "a.2", "b", "c"]
    assert page(driver, limit=2) == ["a", "a.1"]
    assert page(driver, after="a.1", limit=2) == ["a.2", "b"]
    assert page(driver, after="c") == []


@pytest.mark.parametrize(
    ("prefix", "names"),
    [("a", ["a", "a.b", "a_b"]), ("a_", ["a_b"]), ("A", ["Ab"]), ("x", [])],
)
def test_a_prefix_is_taken_literally(driver, prefix, names):
    for name in ("a", "a.b", "a_b", "Ab", "b"):
        driver.queue(name)

    assert page(driver, prefix=prefix) == names


def test_counts_are_given_for_every_queue_asked_for(driver):
    mail, post = driver.queue("mail"), driver.queue("post")
    driver.send(mail)

    counts = driver.read(lambda s: s.queues.counts([mail.queue_no, post.queue_no, 12345]))

    assert counts == {
        mail.queue_no: Counts(ready=1, sent_total=1),
        post.queue_no: Counts(),
        12345: Counts(),
    }


def test_the_total_is_over_all_queues(driver):
    assert driver.read(lambda s: s.queues.total()) == Counts()
    for name in ("mail", "post"):
        queue = driver.queue(name)
        driver.send(queue)
        driver.send(queue, delay_ms=1)

    total = driver.read(lambda s: s.queues.total())

    assert total == Counts(ready=2, waiting=2, sent_total=4)
    assert driver.read(lambda s: s.queues.count()) == 2


def test_the_oldest_ready_message_has_been_due_since_a_known_instant(driver):
    mail = driver.queue("mail")
    assert driver.read(lambda s: s.queues.oldest_ready_at(mail.queue_no)) is None
    driver.send(mail, due_at=driver.now - 5)
    driver.send(mail)
    driver.send(mail, delay_ms=1)

    assert driver.read(lambda s: s.queues.oldest_ready_at(mail.queue_no)) == driver.now - 5
