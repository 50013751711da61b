"""Move tasks as rows, and the messages that they move, step by step."""

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
from penstock.domain.queue.counts import Counts
from tests.factories import an_id


@pytest.fixture
def dead(desk):
    return desk.queue("dead")


@pytest.fixture
def mail(desk, dead):
    return desk.queue("mail", dead_letter_queue="dead", lease_ms=MINUTE)


def start(desk, source, to=None, **fields):
    def do(session):
        task = move.new_task(
            an_id(desk.now),
            source=(source.queue_no, source.name),
            target=None if to is None else (to.queue_no, to.name),
            max_per_second=None,
            to_move=0,
            before_no=session.moves.place(),
            now=desk.now,
        )
        task = replace(task, **fields)
        session.moves.add(task)
        return task

    return desk.write(do)


def move_some(desk, task, limit=100):
    return desk.write(lambda s: s.moves.move_some(task, limit=limit, now=desk.now))


def is_done(desk, task):
    return desk.write(lambda s: s.moves.is_done(task, now=desk.now))


def stranded(desk, task):
    return desk.write(lambda s: s.moves.stranded(task, now=desk.now))


def find(desk, task):
    return desk.read(lambda s: s.moves.find(task.task_id))


def end(desk, task):
    desk.write(lambda s: s.moves.save(move.complete(task, now=desk.now)))


def of_source(desk, queue, limit=100):
    return desk.read(lambda s: s.moves.of_source(queue.queue_no, limit=limit))


def remove(desk, queue):
    desk.write(lambda s: s.queues.remove(queue.queue_no, now=desk.now))


def die(desk, queue, **draft):
    message_id = desk.send(queue, **draft)
    desk.alter(message_id, lambda m, _: lifecycle.bury(m, reason="broken"))
    return message_id


def test_a_task_is_found_as_it_was_added(desk, dead, mail):
    task = start(desk, dead, mail, max_per_second=7, to_move=12, credit=1000)

    assert find(desk, task) == task
    assert desk.read(lambda s: s.moves.active()) == [task.task_id]
    assert desk.read(lambda s: s.moves.find("no-such-task")) is None


def test_what_a_step_changes_is_kept(desk, dead):
    task = start(desk, dead, max_per_second=7)
    after = move.fail(move.advance(task, now=desk.now + 5, moved=3), now=desk.now, reason="why")

    desk.write(lambda s: s.moves.save(after))

    assert find(desk, task) == after
    assert desk.read(lambda s: s.moves.active()) == []


def test_of_each_source_one_task_at_a_time_is_active(desk, dead, mail):
    first = start(desk, dead)
    start(desk, mail)

    with pytest.raises(MoveRunning):
        start(desk, dead)
    desk.write(lambda s: s.moves.save(move.cancel(first)))
    with pytest.raises(MoveRunning):
        start(desk, dead)
    end(desk, first)

    assert start(desk, dead).state is MoveState.RUNNING


def test_a_task_that_has_ended_is_not_advanced(desk, dead):
    task = start(desk, dead)
    assert desk.write(lambda s: s.moves.to_advance(task.task_id)) == task

    end(desk, task)

    assert desk.write(lambda s: s.moves.to_advance(task.task_id)) is None
    assert desk.write(lambda s: s.moves.to_change(task.task_id)) == find(desk, task)


def test_the_tasks_of_a_source_are_listed_newest_first(desk, dead, mail):
    tasks = []
    for _ in range(3):
        tasks.append(start(desk, dead))
        end(desk, tasks[-1])
    other = start(desk, mail)

    assert [t.task_id for t in of_source(desk, dead)] == [t.task_id for t in reversed(tasks)]
    assert [t.task_id for t in of_source(desk, dead, limit=1)] == [tasks[-1].task_id]
    assert of_source(desk, mail) == [other]


def test_only_the_latest_ended_ones_of_a_source_are_remembered(desk, dead, mail):
    other = start(desk, mail)
    end(desk, other)
    ids: list[str] = []
    for _ in range(move.KEPT_PER_SOURCE + 2):
        task = start(desk, dead)
        ids.insert(0, task.task_id)
        end(desk, task)

    assert [t.task_id for t in of_source(desk, dead)] == ids[: move.KEPT_PER_SOURCE]
    assert find(desk, other) is not None


def test_tasks_that_ended_long_ago_are_forgotten(desk, dead, mail):
    old, running = start(desk, dead), start(desk, mail)
    end(desk, old)

    assert desk.write(lambda s: s.moves.forget(before_at=desk.now)) == 0
    assert desk.write(lambda s: s.moves.forget(before_at=desk.now + 1)) == 1

    assert find(desk, old) is None
    assert find(desk, running) == running


def test_a_task_remembers_the_names_of_queues_that_are_gone(desk, dead, mail):
    task = start(desk, dead, mail)
    remove(desk, dead)
    remove(desk, mail)

    assert find(desk, task) == task


def test_dead_letters_go_home_oldest_first_and_no_more_than_asked_for(desk, dead, mail):
    post = desk.queue("post", dead_letter_queue="dead")
    ids = [die(desk, queue) for queue in (mail, post, mail)]
    task = start(desk, dead)

    assert [move_some(desk, task, limit=2), is_done(desk, task)] == [2, False]
    assert [move_some(desk, task, limit=2), is_done(desk, task)] == [1, True]

    assert desk.claim_ids(mail) == [ids[0], ids[2]]
    assert desk.claim_ids(post) == [ids[1]]
    assert desk.counts(dead) == Counts(sent_total=3, cancelled_total=3)


def test_a_moved_letter_is_as_the_lifecycle_says(desk, dead, mail):
    message_id = die(desk, mail, expires_in_ms=MINUTE)
    letter = desk.get(message_id)
    desk.clock.advance(seconds=1)

    move_some(desk, start(desk, dead))

    found = desk.get(message_id)
    expected = transfer.move(letter, mail, now=desk.now)
    assert found == replace(expected, order_no=found.order_no)


def test_the_dead_at_rest_come_back_to_life_where_they_are(desk):
    mail = desk.queue("mail")
    ids = [die(desk, mail) for _ in range(2)]
    ordinary = desk.send(mail)

    assert move_some(desk, start(desk, mail)) == 2

    assert desk.claim_ids(mail) == [ordinary, *ids]


def test_with_a_target_everything_that_nobody_holds_goes_there(desk, dead, mail):
    other = desk.queue("other")
    letter, at_rest = die(desk, mail), die(desk, dead)
    ordinary = desk.send(dead)
    task = start(desk, dead, other)

    assert move_some(desk, task) == 3

    assert sorted(desk.claim_ids(other)) == sorted([letter, at_rest, ordinary])
    assert is_done(desk, task)
    assert desk.counts(dead).is_balanced
    assert desk.counts(other).is_balanced


def test_without_a_target_ordinary_messages_stay(desk, dead, mail):
    ordinary = desk.send(dead)
    task = start(desk, dead)

    assert move_some(desk, task) == 0

    assert desk.claim_ids(dead) == [ordinary]


def test_what_somebody_holds_and_what_is_not_due_or_expired_is_left_alone(desk, dead, mail):
    other = desk.queue("other")
    held = [die(desk, mail), desk.send(dead)]
    assert desk.claim_ids(dead) == held
    waiting = desk.send(dead, delay_ms=MINUTE)
    expired = desk.send(dead, expires_in_ms=5)
    desk.clock.advance(ms=5)
    task = start(desk, dead, other)

    assert move_some(desk, task) == 0
    assert is_done(desk, task)

    states = [desk.get(message_id).state for message_id in (*held, waiting, expired)]
    assert states == [State.LEASED, State.LEASED, State.WAITING, State.READY]


def test_what_comes_after_the_start_is_not_moved(desk, dead, mail):
    other = desk.queue("other")
    early = die(desk, mail)
    task = start(desk, dead, other)
    late = [die(desk, mail), die(desk, dead), desk.send(dead)]

    assert move_some(desk, task) == 1

    assert desk.claim_ids(other) == [early]
    assert {desk.get(message_id).queue_no for message_id in late} == {dead.queue_no}


def test_a_message_that_dies_again_at_once_is_not_moved_for_ever(desk, dead, mail):
    message_id = die(desk, mail)
    task = start(desk, dead)
    assert move_some(desk, task) == 1

    desk.act(Verb.BURY, *desk.claim(mail))

    assert desk.get(message_id).queue_no == dead.queue_no
    assert is_done(desk, task)


def test_letters_whose_home_is_gone_are_left_as_they_are_and_hold_up_nobody(desk, dead, mail):
    gone = desk.queue("gone", dead_letter_queue="dead")
    lost, moved = die(desk, gone), die(desk, mail)
    letter = desk.get(lost)
    remove(desk, gone)
    task = start(desk, dead)

    assert move_some(desk, task, limit=1) == 1

    assert desk.claim_ids(mail) == [moved]
    assert desk.get(lost) == letter
    assert is_done(desk, task)
    assert stranded(desk, task) == move.QUEUE_NOT_FOUND


def test_letters_whose_home_is_gone_can_be_moved_to_a_target(desk, dead):
    gone, other = desk.queue("gone", dead_letter_queue="dead"), desk.queue("other")
    lost = die(desk, gone)
    remove(desk, gone)
    task = start(desk, dead, other)

    assert move_some(desk, task) == 1

    assert desk.claim_ids(other) == [lost]
    assert stranded(desk, task) is None


def test_ordinary_messages_of_a_dead_letter_queue_have_no_home(desk, dead, mail):
    task = start(desk, dead)
    assert stranded(desk, task) is None
    end(desk, task)
    desk.send(dead)

    assert stranded(desk, start(desk, dead)) == move.HOME_UNKNOWN


def test_ordinary_messages_of_a_queue_that_is_no_dead_letter_queue_are_where_they_belong(desk):
    mail = desk.queue("mail")
    desk.send(mail)

    assert stranded(desk, start(desk, mail)) is None


def test_ordinary_messages_of_a_group_are_moved_one_after_the_other(desk):
    source = desk.queue("source", ordering="group")
    target = desk.queue("target", ordering="group")
    ids = [desk.send(source, group=g, priority=p) for g, p in (("a", 9), ("a", 1), ("b", 5))]
    task = start(desk, source, target)

    assert [move_some(desk, task) for _ in range(3)] == [2, 1, 0]

    first = desk.claim(target, 10)
    assert {m.id for m in first} == {ids[0], ids[2]}
    for message in first:
        desk.complete(message)
    assert desk.claim_ids(target) == [ids[1]]


def test_a_group_whose_first_message_is_held_waits_for_it(desk):
    source = desk.queue("source", ordering="group")
    target = desk.queue("target")
    first, _ = desk.send(source, group="a"), desk.send(source, group="a")
    assert desk.claim_ids(source) == [first]

    assert move_some(desk, start(desk, source, target)) == 0


def test_those_who_wait_at_the_target_are_woken(desk, dead, mail):
    die(desk, mail)
    task = start(desk, dead)
    heard: list[Mapping[int, int]] = []
    desk.store.listen(heard.append)

    move_some(desk, task)

    assert [woken.get(mail.queue_no) for woken in heard] == [1]


def test_a_step_that_does_not_commit_moves_and_counts_nothing(desk, dead, mail):
    message_id = die(desk, mail)
    task = start(desk, dead)

    def broken(session):
        moved = session.moves.move_some(task, limit=1, now=desk.now)
        session.moves.save(move.advance(task, now=desk.now, moved=moved))
        raise MoveRunning("the step was interrupted")

    with pytest.raises(MoveRunning, match="interrupted"):
        desk.write(broken)

    assert find(desk, task) == task
    assert desk.get(message_id).queue_no == dead.queue_no


def test_queues_are_found_by_where_their_dead_messages_go(desk, dead, mail):
    post = desk.queue("post", dead_letter_queue="dead")
    desk.queue("other", dead_letter_queue="elsewhere")
    desk.queue("plain")
    gone = desk.queue("gone", dead_letter_queue="dead")
    remove(desk, gone)

    def sources(**wanted):
        page = {"prefix": "", "after": "", "limit": 10, "dead_letter_queue": "dead"} | wanted
        return [q.name for q in desk.read(lambda s: s.queues.page(**page))]

    assert sources() == [mail.name, post.name]
    assert sources(limit=1) == [mail.name]
    assert sources(after=mail.name) == [post.name]
    assert sources(prefix="po") == [post.name]
    assert sources(dead_letter_queue="plain") == []
