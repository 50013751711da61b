"""The mover advances move tasks at their rates, and ends them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.errors import (
    InvalidRequest,
    MoveNotFound,
    MoveNotRunning,
    MoveRunning,
    QueueNotFound,
    TargetNotFound,
)
from penstock.domain.limits import DAY, HOUR
from penstock.domain.message import lifecycle
from penstock.domain.message import move_task as move
from penstock.domain.message.lifecycle import State
from penstock.domain.message.move_task import MoveState, MoveTask
from penstock.domain.queue.queue import Queue
from penstock.outbound.dice import SystemDice
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.runtime import duties
from penstock.runtime.duties import Mover, Pruner
from penstock.services.bulk.moves import MoveService
from tests.store.backends import Open
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

EVERY_MS = 500


@pytest.fixture
def dead(driver: StoreDriver) -> Queue:
    return driver.queue("dead")


@pytest.fixture
def mail(driver: StoreDriver, dead: Queue) -> Queue:
    return driver.queue("mail", dead_letter_queue="dead")


@pytest.fixture
def moves(driver: StoreDriver) -> MoveService:
    return MoveService(driver.store, driver.clock, SystemDice())


@pytest.fixture
def mover(moves: MoveService) -> Mover:
    return Mover(moves, every_ms=EVERY_MS)


def die(driver: StoreDriver, queue: Queue, count: int = 1) -> list[str]:
    ids = driver.send_many(queue, count)
    for message_id in ids:
        driver.alter(message_id, lambda m, _: lifecycle.bury(m))
    return ids


def get(moves: MoveService, task: MoveTask) -> MoveTask:
    return moves.get(task.task_id).result()


def remove(driver: StoreDriver, queue: Queue) -> None:
    driver.write(lambda s: s.queues.remove(queue.queue_no, now=driver.now))


def test_a_move_without_a_rate_is_done_at_the_first_tick(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    ids = die(driver, mail, 5)
    task = moves.start("dead").result()
    driver.clock.advance(seconds=1)

    next_due = mover.tick(driver.now)

    ended = get(moves, task)
    assert (ended.state, ended.moved, ended.to_move) == (MoveState.COMPLETED, 5, 5)
    assert (ended.started_at, ended.ended_at) == (driver.now - 1000, driver.now)
    assert next_due == driver.now + EVERY_MS
    assert driver.claim_ids(mail) == ids
    check_counters(driver)


def test_with_nothing_to_do_the_mover_writes_nothing(
    driver: StoreDriver, dead: Queue, moves: MoveService, mover: Mover
) -> None:
    assert mover.tick(driver.now) == driver.now + EVERY_MS


def test_a_move_out_of_an_empty_queue_completes_at_once(
    driver: StoreDriver, dead: Queue, moves: MoveService, mover: Mover
) -> None:
    task = moves.start("dead", max_per_second=1).result()

    mover.tick(driver.now)

    assert get(moves, task).state is MoveState.COMPLETED


def test_a_rate_is_kept_and_the_move_ends_with_its_last_message(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    die(driver, mail, 4)
    task = moves.start("dead", max_per_second=2).result()
    started, moved = driver.now, {}

    while get(moves, task).is_active:
        next_due = mover.tick(driver.now)
        moved[driver.now - started] = get(moves, task).moved
        assert driver.now < next_due <= driver.now + EVERY_MS
        driver.clock.advance(ms=next_due - driver.now)

    assert moved == {0: 1, 500: 2, 1000: 3, 1500: 4}


def test_the_mover_ticks_again_as_soon_as_the_next_messages_may_go(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    die(driver, mail, 9)
    moves.start("dead", max_per_second=50).result()

    next_due = mover.tick(driver.now)

    assert next_due == driver.now + 100, "a tenth of a second's worth at a time"


def test_an_hour_without_a_node_is_not_caught_up(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    die(driver, mail, 30)
    task = moves.start("dead", max_per_second=20).result()
    mover.tick(driver.now)
    driver.clock.advance(hours=1)

    mover.tick(driver.now)

    assert get(moves, task).moved == 1 + 4


def test_many_messages_are_moved_in_chunks_so_that_other_duties_run_between(
    driver: StoreDriver,
    dead: Queue,
    mail: Queue,
    moves: MoveService,
    mover: Mover,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(move, "CHUNK", 2)
    monkeypatch.setattr(duties, "_CHUNKS_PER_TICK", 3)
    die(driver, mail, 13)
    task = moves.start("dead").result()

    asks_again_in, moved = [], []
    for _ in range(3):
        asks_again_in.append(mover.tick(driver.now) - driver.now)
        moved.append(get(moves, task).moved)

    assert moved == [6, 12, 13]
    assert asks_again_in == [1, 1, EVERY_MS]


def test_several_moves_run_side_by_side(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    post = driver.queue("post")
    die(driver, mail, 3)
    die(driver, post, 3)
    slow, fast = (moves.start(name, max_per_second=1).result() for name in ("dead", "post"))

    for _ in range(3):
        mover.tick(driver.now)
        driver.clock.advance(seconds=1)

    assert [get(moves, task).moved for task in (slow, fast)] == [3, 3]


def test_a_cancelled_move_stops_and_what_it_has_moved_stays_moved(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    die(driver, mail, 3)
    task = moves.start("dead", max_per_second=1).result()
    mover.tick(driver.now)

    cancelling = moves.cancel(task.task_id).result()
    driver.clock.advance(seconds=1)
    mover.tick(driver.now)

    assert (cancelling.state, cancelling.moved) == (MoveState.CANCELLING, 1)
    cancelled = get(moves, task)
    assert (cancelled.state, cancelled.moved, cancelled.ended_at) == (
        MoveState.CANCELLED,
        1,
        driver.now,
    )
    assert (driver.counts(mail).ready, driver.counts(dead).ready) == (1, 2)
    with pytest.raises(MoveNotRunning):
        moves.cancel(task.task_id).result()


@pytest.mark.parametrize("gone", ["dead", "other"])
def test_a_move_whose_source_or_target_is_removed_fails(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover, gone: str
) -> None:
    other = driver.queue("other")
    die(driver, mail, 3)
    task = moves.start("dead", target="other", max_per_second=1).result()
    mover.tick(driver.now)
    remove(driver, dead if gone == "dead" else other)

    mover.tick(driver.now)

    failed = get(moves, task)
    assert (failed.state, failed.reason, failed.moved) == (MoveState.FAILED, "queue_not_found", 1)


def test_messages_without_a_source_queue_fail_the_move_after_all_others_are_moved(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    ordinary = driver.send(dead)
    [letter] = die(driver, mail)
    task = moves.start("dead").result()

    mover.tick(driver.now)

    failed = get(moves, task)
    assert (failed.state, failed.reason, failed.moved) == (MoveState.FAILED, "home_unknown", 1)
    assert driver.get(letter).queue_no == mail.queue_no
    assert driver.get(ordinary).queue_no == dead.queue_no


def test_a_move_continues_when_the_store_is_opened_again(
    driver: StoreDriver,
    dead: Queue,
    mail: Queue,
    moves: MoveService,
    mover: Mover,
    open_store: Open,
) -> None:
    ids = die(driver, mail, 3)
    task = moves.start("dead", max_per_second=1).result()
    mover.tick(driver.now)
    driver.store.close()

    driver.store = open_store()
    again = MoveService(driver.store, driver.clock, SystemDice())
    for _ in range(2):
        driver.clock.advance(seconds=1)
        Mover(again, every_ms=EVERY_MS).tick(driver.now)

    ended = get(again, task)
    assert (ended.state, ended.moved) == (MoveState.COMPLETED, 3)
    assert driver.claim_ids(mail) == ids
    check_counters(driver)
    driver.store.close()


class Killed(BaseException):
    """The process is gone: nothing handles this."""


class Dying:
    """The store of a process that is killed before one of its commits."""

    def __init__(self, store: Store, *, commits: int) -> None:
        self._store = store
        self._left = commits

    def write(self, what: Callable[[Session], Any]) -> Ticket[Any]:
        if self._left == 0:
            raise Killed
        self._left -= 1
        return self._store.write(what)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("commits", range(5))
def test_between_any_two_commits_the_count_is_what_was_moved(
    driver: StoreDriver,
    dead: Queue,
    mail: Queue,
    moves: MoveService,
    mover: Mover,
    monkeypatch: pytest.MonkeyPatch,
    commits: int,
) -> None:
    monkeypatch.setattr(move, "CHUNK", 2)
    ids = die(driver, mail, 11)
    task = moves.start("dead").result()
    dying: Any = Dying(driver.store, commits=commits)

    with pytest.raises(Killed):
        Mover(MoveService(dying, driver.clock, SystemDice()), every_ms=EVERY_MS).tick(driver.now)

    left = get(moves, task)
    assert (left.state, left.moved) == (MoveState.RUNNING, 2 * commits)
    assert driver.counts(mail).ready == 2 * commits
    assert driver.counts(dead).ready == 11 - 2 * commits
    mover.tick(driver.now)
    assert get(moves, task).moved == 11
    assert driver.claim_ids(mail) == ids


def test_a_second_move_out_of_a_queue_waits_until_the_first_has_ended(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    first = moves.start("dead").result()
    with pytest.raises(MoveRunning):
        moves.start("dead", target="mail").result()

    mover.tick(driver.now)
    second = moves.start("dead", target="mail").result()

    listed = moves.of_source("dead").result()
    assert [task.task_id for task in listed] == [second.task_id, first.task_id]
    assert (second.source, second.target) == ("dead", "mail")


def test_a_move_that_cannot_be_started_is_refused(
    driver: StoreDriver, dead: Queue, moves: MoveService
) -> None:
    with pytest.raises(QueueNotFound) as refusal:
        moves.start("none", target="dead").result()
    assert not isinstance(refusal.value, TargetNotFound)
    with pytest.raises(TargetNotFound):
        moves.start("dead", target="none").result()
    with pytest.raises(InvalidRequest, match="itself"):
        moves.start("dead", target="dead")
    driver.queue("line", ordering="group")
    for source, target in (("dead", "line"), ("line", "dead")):
        with pytest.raises(InvalidRequest, match="same ordering"):
            moves.start(source, target=target).result()
    with pytest.raises(InvalidRequest, match="max_per_second"):
        moves.start("dead", max_per_second=0)
    with pytest.raises(QueueNotFound):
        moves.of_source("none").result()
    for ask in (moves.get, moves.cancel):
        with pytest.raises(MoveNotFound):
            ask("none").result()
    assert moves.of_source("dead").result() == []


def test_old_moves_are_pruned_with_the_history(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    task = moves.start("dead").result()
    mover.tick(driver.now)
    pruner = Pruner(driver.store, retention_days=7)

    driver.clock.advance(days=7, ms=-HOUR)
    pruner.tick(driver.now)
    assert get(moves, task).state is MoveState.COMPLETED

    driver.clock.advance(ms=DAY)
    pruner.tick(driver.now)
    with pytest.raises(MoveNotFound):
        get(moves, task)


def test_leased_messages_are_not_moved(
    driver: StoreDriver, dead: Queue, mail: Queue, moves: MoveService, mover: Mover
) -> None:
    die(driver, mail, 2)
    [held] = driver.claim(dead)
    task = moves.start("dead").result()

    mover.tick(driver.now)
    driver.complete(held)

    assert get(moves, task).moved == 1
    assert driver.endings(id=held.id)[0].outcome is State.DONE
