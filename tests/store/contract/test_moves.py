"""Move tasks, and the messages that they move step by step."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from penstock.domain.errors import MoveRunning
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message import move_task as move
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.move_task import MoveState
from penstock.domain.queue.queue import Counts
from tests.factories import an_id


@pytest.fixture
def dead(driver):
    return driver.queue("dead")


@pytest.fixture
def mail(driver, dead):
    return driver.queue("mail", dead_letter_queue="dead", lease_ms=MINUTE)


def start(driver, source, to=None, **fields):
    def do(session):
        task = move.new_task(
            an_id(driver.now),
            source=(source.queue_no, source.name),
            target=None if to is None else (to.queue_no, to.name),
            max_per_second=None,
            to_move=0,
            before_no=session.moves.place(),
            now=driver.now,
        )
        task = replace(task, **fields)
        session.moves.add(task)
        return task

    return driver.write(do)


def move_some(driver, task, limit=100):
    return driver.write(lambda s: s.moves.move_some(task, limit=limit, now=driver.now))


def is_done(driver, task):
    return driver.write(lambda s: s.moves.is_done(task, now=driver.now))


def why_left(driver, task):
    return driver.write(lambda s: s.moves.why_left(task, now=driver.now))


def find(driver, task):
    return driver.read(lambda s: s.moves.find(task.task_id))


def end(driver, task):
    driver.write(lambda s: s.moves.save(move.complete(task, now=driver.now)))


def of_source(driver, queue, limit=100):
    return driver.read(lambda s: s.moves.of_source(queue.queue_no, limit=limit))


def remove(driver, queue):
    driver.write(lambda s: s.queues.remove(queue.queue_no, now=driver.now))


def die(driver, queue, **draft):
    message_id = driver.send(queue, **draft)
    driver.alter(message_id, lambda m, _: lifecycle.bury(m, reason="broken"))
    return message_id


def test_a_task_is_found_as_it_was_added(driver, dead, mail):
    task = start(driver, dead, mail, max_per_second=7, to_move=12, credit=1000)

    assert find(driver, task) == task
    assert driver.read(lambda s: s.moves.active()) == [task.task_id]
    assert driver.read(lambda s: s.moves.find("no-such-task")) is None


def test_the_changes_of_a_step_are_kept(driver, dead):
    task = start(driver, dead, max_per_second=7)
    after = move.fail(move.advance(task, now=driver.now + 5, moved=3), now=driver.now, reason="why")

    driver.write(lambda s: s.moves.save(after))

    assert find(driver, task) == after
    assert driver.read(lambda s: s.moves.active()) == []


def test_each_source_has_one_active_task_at_a_time(driver, dead, mail):
    first = start(driver, dead)
    start(driver, mail)

    with pytest.raises(MoveRunning):
        start(driver, dead)
    driver.write(lambda s: s.moves.save(move.cancel(first)))
    with pytest.raises(MoveRunning):
        start(driver, dead)
    end(driver, first)

    assert start(driver, dead).state is MoveState.RUNNING


def test_a_task_that_has_ended_is_not_advanced(driver, dead):
    task = start(driver, dead)
    assert driver.write(lambda s: s.moves.lock_active(task.task_id)) == task

    end(driver, task)

    assert driver.write(lambda s: s.moves.lock_active(task.task_id)) is None
    assert driver.write(lambda s: s.moves.lock(task.task_id)) == find(driver, task)


def test_the_tasks_of_a_source_are_listed_newest_first(driver, dead, mail):
    tasks = []
    for _ in range(3):
        tasks.append(start(driver, dead))
        end(driver, tasks[-1])
    other = start(driver, mail)

    assert [t.task_id for t in of_source(driver, dead)] == [t.task_id for t in reversed(tasks)]
    assert [t.task_id for t in of_source(driver, dead, limit=1)] == [tasks[-1].task_id]
    assert of_source(driver, mail) == [other]


def test_only_the_latest_ended_ones_of_a_source_are_remembered(driver, dead, mail):
    other = start(driver, mail)
    end(driver, other)
    ids: list[str] = []
    for _ in range(move.KEPT_PER_SOURCE + 2):
        task = start(driver, dead)
        ids.insert(0, task.task_id)
        end(driver, task)

    assert [t.task_id for t in of_source(driver, dead)] == ids[: move.KEPT_PER_SOURCE]
    assert find(driver, other) is not None


def test_tasks_that_ended_long_ago_are_forgotten(driver, dead, mail):
    old, running = start(driver, dead), start(driver, mail)
    end(driver, old)

    assert driver.write(lambda s: s.moves.forget(before_at=driver.now)) == 0
    assert driver.write(lambda s: s.moves.forget(before_at=driver.now + 1)) == 1

    assert find(driver, old) is None
    assert find(driver, running) == running


def test_a_task_remembers_the_names_of_queues_that_are_gone(driver, dead, mail):
    task = start(driver, dead, mail)
    remove(driver, dead)
    remove(driver, mail)

    assert find(driver, task) == task


def test_dead_letters_return_to_their_queues_oldest_first_up_to_the_limit(driver, dead, mail):
    post = driver.queue("post", dead_letter_queue="dead")
    ids = [die(driver, queue) for queue in (mail, post, mail)]
    task = start(driver, dead)

    assert [move_some(driver, task, limit=2), is_done(driver, task)] == [2, False]
    assert [move_some(driver, task, limit=2), is_done(driver, task)] == [1, True]

    assert driver.claim_ids(mail) == [ids[0], ids[2]]
    assert driver.claim_ids(post) == [ids[1]]
    assert driver.counts(dead) == Counts(sent_total=3, cancelled_total=3)


def test_a_moved_dead_letter_is_as_the_lifecycle_says(driver, dead, mail):
    message_id = die(driver, mail, expires_in_ms=MINUTE)
    letter = driver.get(message_id)
    driver.clock.advance(seconds=1)

    move_some(driver, start(driver, dead))

    found = driver.get(message_id)
    expected = transfer.move(letter, mail, now=driver.now)
    assert found == replace(expected, order_no=found.order_no)


def test_dead_messages_of_a_queue_without_a_target_are_revived_in_place(driver):
    mail = driver.queue("mail")
    ids = [die(driver, mail) for _ in range(2)]
    ordinary = driver.send(mail)

    assert move_some(driver, start(driver, mail)) == 2

    assert driver.claim_ids(mail) == [ordinary, *ids]


def test_with_a_target_all_messages_that_are_not_leased_are_moved(driver, dead, mail):
    other = driver.queue("other")
    letter, at_rest = die(driver, mail), die(driver, dead)
    ordinary = driver.send(dead)
    task = start(driver, dead, other)

    assert move_some(driver, task) == 3

    assert sorted(driver.claim_ids(other)) == sorted([letter, at_rest, ordinary])
    assert is_done(driver, task)
    assert driver.counts(dead).is_balanced
    assert driver.counts(other).is_balanced


def test_without_a_target_ordinary_messages_stay(driver, dead, mail):
    ordinary = driver.send(dead)
    task = start(driver, dead)

    assert move_some(driver, task) == 0

    assert driver.claim_ids(dead) == [ordinary]


def test_leased_delayed_and_expired_messages_are_left_alone(driver, dead, mail):
    other = driver.queue("other")
    held = [die(driver, mail), driver.send(dead)]
    assert driver.claim_ids(dead) == held
    waiting = driver.send(dead, delay_ms=MINUTE)
    expired = driver.send(dead, expires_in_ms=5)
    driver.clock.advance(ms=5)
    task = start(driver, dead, other)

    assert move_some(driver, task) == 0
    assert is_done(driver, task)

    states = [driver.get(message_id).state for message_id in (*held, waiting, expired)]
    assert states == [State.LEASED, State.LEASED, State.WAITING, State.READY]


def test_messages_sent_after_the_start_are_not_moved(driver, dead, mail):
    other = driver.queue("other")
    early = die(driver, mail)
    task = start(driver, dead, other)
    late = [die(driver, mail), die(driver, dead), driver.send(dead)]

    assert move_some(driver, task) == 1

    assert driver.claim_ids(other) == [early]
    assert {driver.get(message_id).queue_no for message_id in late} == {dead.queue_no}


def test_a_message_that_dies_again_at_once_is_not_moved_for_ever(driver, dead, mail):
    message_id = die(driver, mail)
    task = start(driver, dead)
    assert move_some(driver, task) == 1

    driver.act(Verb.BURY, *driver.claim(mail))

    assert driver.get(message_id).queue_no == dead.queue_no
    assert is_done(driver, task)


def test_dead_letters_of_a_removed_queue_stay_and_do_not_block_others(driver, dead, mail):
    gone = driver.queue("gone", dead_letter_queue="dead")
    lost, moved = die(driver, gone), die(driver, mail)
    letter = driver.get(lost)
    remove(driver, gone)
    task = start(driver, dead)

    assert move_some(driver, task, limit=1) == 1

    assert driver.claim_ids(mail) == [moved]
    assert driver.get(lost) == letter
    assert is_done(driver, task)
    assert why_left(driver, task) == move.QUEUE_NOT_FOUND


def test_dead_letters_of_a_removed_queue_can_be_moved_to_a_target(driver, dead):
    gone, other = driver.queue("gone", dead_letter_queue="dead"), driver.queue("other")
    lost = die(driver, gone)
    remove(driver, gone)
    task = start(driver, dead, other)

    assert move_some(driver, task) == 1

    assert driver.claim_ids(other) == [lost]
    assert why_left(driver, task) is None


def test_ordinary_messages_of_a_dead_letter_queue_have_no_source(driver, dead, mail):
    task = start(driver, dead)
    assert why_left(driver, task) is None
    end(driver, task)
    driver.send(dead)

    assert why_left(driver, start(driver, dead)) == move.HOME_UNKNOWN


def test_ordinary_messages_of_an_ordinary_queue_stay(driver):
    mail = driver.queue("mail")
    driver.send(mail)

    assert why_left(driver, start(driver, mail)) is None


def test_ordinary_messages_of_a_group_are_moved_one_after_the_other(driver):
    source = driver.queue("source", ordering="group")
    target = driver.queue("target", ordering="group")
    ids = [driver.send(source, group=g, priority=p) for g, p in (("a", 9), ("a", 1), ("b", 5))]
    task = start(driver, source, target)

    assert [move_some(driver, task) for _ in range(3)] == [2, 1, 0]

    first = driver.claim(target, 10)
    assert {m.id for m in first} == {ids[0], ids[2]}
    for message in first:
        driver.complete(message)
    assert driver.claim_ids(target) == [ids[1]]


def test_a_group_whose_first_message_is_leased_waits_for_it(driver):
    source = driver.queue("source", ordering="group")
    target = driver.queue("target")
    first, _ = driver.send(source, group="a"), driver.send(source, group="a")
    assert driver.claim_ids(source) == [first]

    assert move_some(driver, start(driver, source, target)) == 0


def test_claims_that_wait_at_the_target_are_woken(driver, dead, mail):
    die(driver, mail)
    task = start(driver, dead)
    wakeups: list[Mapping[int, int]] = []
    driver.store.listen(wakeups.append)

    move_some(driver, task)

    assert [woken.get(mail.queue_no) for woken in wakeups] == [1]


def test_a_step_that_does_not_commit_moves_and_counts_nothing(driver, dead, mail):
    message_id = die(driver, mail)
    task = start(driver, dead)

    def broken(session):
        moved = session.moves.move_some(task, limit=1, now=driver.now)
        session.moves.save(move.advance(task, now=driver.now, moved=moved))
        raise MoveRunning("the step was interrupted")

    with pytest.raises(MoveRunning, match="interrupted"):
        driver.write(broken)

    assert find(driver, task) == task
    assert driver.get(message_id).queue_no == dead.queue_no


def test_queues_are_found_by_where_their_dead_messages_go(driver, dead, mail):
    post = driver.queue("post", dead_letter_queue="dead")
    driver.queue("other", dead_letter_queue="elsewhere")
    driver.queue("plain")
    gone = driver.queue("gone", dead_letter_queue="dead")
    remove(driver, gone)

    def sources(**wanted):
        page = {"prefix": "", "after": "", "limit": 10, "dead_letter_queue": "dead"} | wanted
        return [q.name for q in driver.read(lambda s: s.queues.page(**page))]

    assert sources() == [mail.name, post.name]
    assert sources(limit=1) == [mail.name]
    assert sources(after=mail.name) == [post.name]
    assert sources(prefix="po") == [post.name]
    assert sources(dead_letter_queue="plain") == []
