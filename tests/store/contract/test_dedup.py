"""Deduplication: keys from contents, keys per group, forgotten keys."""

from penstock.domain.limits import MINUTE
from penstock.domain.message.draft import content_key
from penstock.domain.queue.queue import DedupScope, Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message


def answer_to(driver, queue, **draft):
    [answer] = driver.submit_send(queue, **draft).result()
    assert isinstance(answer, Sent)
    return answer


def forget_keys(driver, queue, limit=100):
    return driver.write(lambda s: s.messages.forget_keys(queue.queue_no, limit=limit))


def test_equal_content_is_one_message_in_a_queue_that_deduplicates_by_content(driver):
    mail = driver.queue(dedup_by_content=True)
    first = driver.send(mail, body='"invoice 17"')

    again = answer_to(driver, mail, body='"invoice 17"')
    other = answer_to(driver, mail, body='"invoice 18"')

    assert (again.id, again.is_duplicate) == (first, True)
    assert not other.is_duplicate
    assert driver.get(first).dedup_key == content_key('"invoice 17"')


def test_a_key_of_the_senders_own_and_one_made_of_the_content_share_one_space(driver):
    mail = driver.queue(dedup_by_content=True)
    first = driver.send(mail, body="1")

    by_key = answer_to(driver, mail, body="2", dedup_key=content_key("1"))
    by_own_key = answer_to(driver, mail, body="1", dedup_key="another")

    assert (by_key.id, by_key.is_duplicate) == (first, True)
    assert not by_own_key.is_duplicate


def test_the_same_key_in_two_groups_is_two_messages_where_it_counts_in_its_group(driver):
    mail = driver.queue(ordering=Ordering.GROUP, dedup_scope=DedupScope.GROUP)
    firsts = {group: driver.send(mail, group=group, dedup_key="once") for group in ("a", "b", None)}

    for group, first in firsts.items():
        again = answer_to(driver, mail, group=group, dedup_key="once")
        assert (again.id, again.is_duplicate) == (first, True)
    assert driver.counts(mail).sent_total == 3


def test_groups_and_keys_that_look_alike_when_joined_are_distinguished(driver):
    mail = driver.queue(dedup_scope=DedupScope.GROUP)
    pairs = [("a", 'b","c'), ('a","b', "c"), ("a", "b"), ('a","b","c', "d")]

    answers = [answer_to(driver, mail, group=group, dedup_key=key) for group, key in pairs]

    assert [answer.is_duplicate for answer in answers] == [False] * 4


def test_the_same_key_in_two_groups_is_one_message_by_default(driver):
    mail = driver.queue(ordering=Ordering.GROUP)
    first = driver.send(mail, group="a", dedup_key="once")

    again = answer_to(driver, mail, group="b", dedup_key="once")

    assert (again.id, again.is_duplicate) == (first, True)


def test_keys_that_are_forgotten_can_be_used_again_and_those_of_other_queues_stay(driver):
    mail, post = driver.queue("mail"), driver.queue("post")
    for queue in (mail, post):
        for key in ("a", "b", "c"):
            driver.send(queue, dedup_key=key)

    assert [forget_keys(driver, mail, limit=2) for _ in range(3)] == [2, 1, 0]

    assert not answer_to(driver, mail, dedup_key="a").is_duplicate
    assert answer_to(driver, post, dedup_key="a").is_duplicate


def test_the_answer_to_a_send_has_the_number_of_the_message(driver):
    mail = driver.queue()
    new = [a_new_message(mail, now=driver.now) for _ in range(3)]
    driver.sent_ids += [n.message.id for n in new]

    numbers = [answer.message_no for answer in driver.store.send(new).result()]

    assert numbers == [driver.get(n.message.id).message_no for n in new]
    assert numbers == sorted(set(numbers))


def test_numbers_grow_within_a_group_and_are_what_a_claim_shows(driver):
    mail = driver.queue(ordering=Ordering.GROUP)
    sent = [answer_to(driver, mail, group=group) for group in "aabab"]

    claimed = {}
    while held := driver.claim(mail, 10):
        for message in held:
            claimed[message.id] = message.message_no
            driver.complete(message)

    numbers = [answer.message_no for answer in sent]
    assert numbers == [claimed[answer.id] for answer in sent] == sorted(set(numbers))


def test_the_answer_to_a_duplicate_has_the_number_of_the_first_even_if_that_has_ended(driver):
    mail = driver.queue(dedup_window_ms=MINUTE)
    first = answer_to(driver, mail, dedup_key="once")
    driver.complete(*driver.claim(mail))

    again = answer_to(driver, mail, dedup_key="once")

    assert again == Sent(first.id, is_duplicate=True, message_no=first.message_no)


def test_the_answer_to_a_duplicate_in_the_same_batch_has_the_number_of_the_first(driver):
    mail = driver.queue(max_messages=3)
    driver.send(mail, dedup_key="known")
    keys = ("known", "a", "b", "b", "c", "a")
    new = [a_new_message(mail, now=driver.now, dedup_key=key) for key in keys]
    driver.sent_ids += [n.message.id for n in new]

    _, a, b, b_again, _, a_again = driver.store.send(new).result()

    assert (a_again.message_no, b_again.message_no) == (a.message_no, b.message_no)
    assert a.message_no == driver.get(a.id).message_no
    assert b.message_no == driver.get(b.id).message_no
