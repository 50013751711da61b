"""Move tasks: progress, rate and end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from penstock.domain.errors import InvalidRequest, MoveNotRunning, WrongState
from penstock.domain.limits import HOUR, MINUTE, SECOND
from penstock.domain.message import move_task as move
from penstock.domain.message import transfer
from penstock.domain.message.lifecycle import NEXT_ORDER, State
from penstock.domain.message.move_task import MoveState, MoveTask
from tests.clocks import NOON
from tests.factories import a_message, a_message_in, a_queue

OTHER = a_queue(2, "other")


def a_task(max_per_second: int | None = None, **fields: Any) -> MoveTask:
    """Started at noon out of queue 1, where each message came from."""
    task = move.new_task(
        "task-1",
        source=(1, "dead"),
        target=None,
        max_per_second=max_per_second,
        to_move=100,
        before_no=50,
        now=NOON,
    )
    return replace(task, **fields)


def run(task: MoveTask, *, late_ms: int, until: int) -> dict[int, int]:
    """How many were moved at each instant, by a duty that ticks when due, or a bit late."""
    moved: dict[int, int] = {}
    now = task.started_at
    while now < until:
        while count := move.allowance(task, now=now):
            task = move.advance(task, now=now, moved=count)
            moved[now] = moved.get(now, 0) + count
        now = move.next_at(task, now=now) + late_ms
    return moved


def most_in_any_second(moved: dict[int, int]) -> int:
    return max(sum(n for at, n in moved.items() if t <= at < t + SECOND) for t in moved)


def test_a_task_without_a_rate_goes_chunk_by_chunk() -> None:
    task = a_task()

    for _ in range(3):
        assert move.allowance(task, now=NOON) == move.CHUNK
        task = move.advance(task, now=NOON, moved=move.CHUNK)

    assert task.moved == 3 * move.CHUNK
    assert move.next_at(task, now=NOON) == NOON


def test_the_first_message_may_go_at_once_and_the_next_when_its_time_has_come() -> None:
    task = a_task(1)
    assert move.allowance(task, now=NOON) == 1

    task = move.advance(task, now=NOON, moved=1)

    assert move.allowance(task, now=NOON + SECOND - 1) == 0
    assert move.next_at(task, now=NOON + 300) == NOON + SECOND
    assert move.allowance(task, now=NOON + SECOND) == 1


@pytest.mark.parametrize("rate", [1, 2, 3, 7, 10, 50, 333, 500, 10_000])
@pytest.mark.parametrize("late_ms", [0, 1, 10])
def test_over_time_as_many_are_moved_as_the_rate_says(rate: int, late_ms: int) -> None:
    moved = run(a_task(rate), late_ms=late_ms, until=NOON + 20 * SECOND)

    assert 0.9 * 20 * rate <= sum(moved.values()) <= 20 * rate + 1


@pytest.mark.parametrize("rate", [1, 3, 7, 10, 50, 500])
def test_in_no_second_more_are_moved_than_the_rate_and_a_fifth_of_it(rate: int) -> None:
    moved = run(a_task(rate), late_ms=7, until=NOON + 5 * SECOND)

    assert most_in_any_second(moved) <= rate + max(1, rate // 5)


def test_slow_rates_are_kept_to_the_message() -> None:
    moved = run(a_task(1), late_ms=10, until=NOON + 10 * SECOND)

    assert most_in_any_second(moved) == 1


@pytest.mark.parametrize("rate", [1, 50, 500])
def test_a_move_does_not_catch_up_after_a_pause(rate: int) -> None:
    task = move.advance(a_task(rate), now=NOON, moved=1)

    assert move.allowance(task, now=NOON + HOUR) == max(1, rate // 5)


def test_a_clock_that_is_behind_takes_nothing_away() -> None:
    task = move.advance(a_task(10), now=NOON + SECOND, moved=1)

    behind = move.advance(task, now=NOON, moved=0)

    assert (behind.credit, behind.credited_at) == (task.credit, task.credited_at)


def test_a_fast_task_waits_until_a_tenth_of_a_second_is_worth_a_step() -> None:
    task = move.advance(a_task(500), now=NOON, moved=1)

    next_at = move.next_at(task, now=NOON)

    assert next_at == NOON + 100
    assert move.allowance(task, now=next_at) == 50


def test_a_step_never_takes_more_than_a_chunk() -> None:
    task = a_task(move.MAX_PER_SECOND, moved=1)

    assert move.allowance(task, now=NOON + MINUTE) == move.CHUNK


@pytest.mark.parametrize("rate", [0, -1, move.MAX_PER_SECOND + 1])
def test_a_rate_out_of_range_is_refused(rate: int) -> None:
    with pytest.raises(InvalidRequest, match="max_per_second"):
        a_task(rate)


def test_a_running_task_completes_fails_or_is_cancelled() -> None:
    task, later = a_task(moved=3), NOON + MINUTE

    completed = move.complete(task, now=later)
    failed = move.fail(task, now=later, reason=move.QUEUE_NOT_FOUND)
    cancelling = move.cancel(task)
    cancelled = move.finish_cancel(cancelling, now=later)

    assert completed == replace(task, state=MoveState.COMPLETED, ended_at=later)
    assert (failed.state, failed.ended_at, failed.reason) == (
        MoveState.FAILED,
        later,
        "queue_not_found",
    )
    assert (cancelling.state, cancelling.ended_at) == (MoveState.CANCELLING, None)
    assert cancelled == replace(task, state=MoveState.CANCELLED, ended_at=later)


@pytest.mark.parametrize("state", [state for state in MoveState if state is not MoveState.RUNNING])
def test_a_move_that_is_not_running_moves_nothing_and_cannot_be_ended(state: MoveState) -> None:
    task = a_task(state=state)

    assert move.allowance(task, now=NOON + HOUR) == 0
    for how in (
        lambda: move.cancel(task),
        lambda: move.complete(task, now=NOON),
        lambda: move.fail(task, now=NOON, reason="no"),
    ):
        with pytest.raises(MoveNotRunning, match=state.value):
            how()


def test_only_a_cancelling_task_ends_as_cancelled() -> None:
    with pytest.raises(MoveNotRunning):
        move.finish_cancel(a_task(), now=NOON)


@pytest.mark.parametrize("state", [State.READY, State.WAITING, State.DEAD])
def test_the_dead_are_moved_as_they_are_redriven(state: State) -> None:
    dead = a_message_in(state, dead_from=7, expires_at=NOON + HOUR)

    assert transfer.move(dead, OTHER, now=NOON) == transfer.redrive(dead, OTHER, now=NOON)


def test_an_ordinary_message_is_moved_as_if_it_had_been_sent_there() -> None:
    message = a_message(attempts=2, failures=1, expires_at=NOON + HOUR)
    keeps_for_a_minute = a_queue(2, "other", retention_ms=MINUTE)

    moved = transfer.move(message, OTHER, now=NOON + 1)

    assert (moved.queue_no, moved.order_no, moved.due_at) == (2, NEXT_ORDER, NOON + 1)
    assert (moved.attempts, moved.failures) == (0, 0)
    assert moved.expires_at == NOON + HOUR, "what its sender said still holds"
    assert transfer.move(message, keeps_for_a_minute, now=NOON).expires_at == NOON + MINUTE


def test_an_ordinary_message_that_is_not_due_stays() -> None:
    with pytest.raises(WrongState):
        transfer.move(a_message_in(State.WAITING), OTHER, now=NOON)
