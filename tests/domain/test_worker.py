"""Workers: which count as alive, and until when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.domain import worker as workers
from penstock.domain.errors import InvalidRequest, WorkerGone, WrongState
from penstock.domain.limits import DEFAULT_LIMITS, MINUTE, SECOND
from penstock.domain.worker import NewWorker, Worker, WorkerState, check_about
from tests.clocks import NOON
from tests.factories import an_id

VALID_MS = 3 * MINUTE


def a_worker(**about: object) -> Worker:
    """Registered at noon, believed for three minutes."""
    return workers.register(
        NewWorker(**about),  # type: ignore[arg-type]
        worker_id=an_id(),
        now=NOON,
        valid_ms=VALID_MS,
    )


def gone(state: WorkerState) -> Worker:
    return replace(a_worker(), state=state, ended_at=NOON)


def test_a_new_worker_is_active_and_counts_as_alive_for_a_while():
    worker = a_worker(name="mailer", queues=("mail",), slots=4)

    assert worker.state is WorkerState.ACTIVE
    assert (worker.name, worker.queues, worker.slots) == ("mailer", ("mail",), 4)
    assert (worker.registered_at, worker.beat_at) == (NOON, NOON)
    assert worker.alive_until == NOON + VALID_MS


def test_a_beat_prolongs_its_life_from_then_on():
    after = workers.beat(a_worker(), now=NOON + MINUTE, valid_ms=VALID_MS)

    assert after.beat_at == NOON + MINUTE
    assert after.alive_until == NOON + MINUTE + VALID_MS


def test_a_worker_is_alive_before_alive_until_but_not_at_it():
    worker = a_worker()

    assert workers.is_alive(worker, now=NOON + VALID_MS - 1)
    assert not workers.is_alive(worker, now=NOON + VALID_MS)


def test_a_late_beat_is_refused_even_before_the_worker_is_marked_lost():
    with pytest.raises(WorkerGone):
        workers.beat(a_worker(), now=NOON + VALID_MS, valid_ms=VALID_MS)


@pytest.mark.parametrize("state", [WorkerState.LEFT, WorkerState.LOST])
def test_a_gone_worker_can_neither_beat_nor_be_drained(state):
    with pytest.raises(WorkerGone):
        workers.beat(gone(state), now=NOON, valid_ms=VALID_MS)
    with pytest.raises(WorkerGone):
        workers.drain(gone(state), now=NOON)


def test_a_draining_worker_keeps_beating():
    draining = workers.drain(a_worker(), now=NOON)

    after = workers.beat(draining, now=NOON + MINUTE, valid_ms=VALID_MS)

    assert after.is_draining
    assert workers.drain(after, now=NOON + MINUTE) == after, "to say so twice changes nothing"


def test_a_worker_that_leaves_is_gone_at_that_instant():
    after = workers.leave(a_worker(), now=NOON + SECOND)

    assert (after.state, after.ended_at) == (WorkerState.LEFT, NOON + SECOND)
    assert not workers.is_alive(after, now=NOON + SECOND)


@pytest.mark.parametrize("state", [WorkerState.LEFT, WorkerState.LOST])
def test_to_leave_after_having_gone_changes_nothing(state):
    before = gone(state)

    assert workers.leave(before, now=NOON + SECOND) == before


def test_a_worker_is_lost_only_after_its_time():
    worker = a_worker()
    with pytest.raises(WrongState):
        workers.lose(worker, now=NOON + VALID_MS - 1)

    after = workers.lose(worker, now=NOON + VALID_MS)

    assert (after.state, after.ended_at) == (WorkerState.LOST, NOON + VALID_MS)
    with pytest.raises(WrongState):
        workers.lose(after, now=NOON + VALID_MS)


def test_a_lost_worker_is_described_with_what_is_known():
    worker = a_worker(name="mailer", host="node-1", pid=4711)

    assert workers.describe_lost(worker) == (
        f"worker mailer (id {worker.id}, host node-1, pid 4711) was lost; "
        "its last beat came at 2030-03-14T12:00:00.000Z"
    )
    unnamed = a_worker()
    assert workers.describe_lost(unnamed).startswith(f"worker {unnamed.id} was lost;")


@pytest.mark.parametrize(
    "about",
    [
        NewWorker(name=""),
        NewWorker(name="x" * 257),
        NewWorker(host="a\x00b"),
        NewWorker(pid=-1),
        NewWorker(queues=("no such name!",)),
        NewWorker(queues=("q",) * 1_001),
        NewWorker(kinds=("",)),
        NewWorker(kinds=("k",) * 101),
        NewWorker(slots=0),
        NewWorker(name="a\n2030-03-14 ERROR a line of its own in the log"),
        NewWorker(host="a\x1b[2J"),
        NewWorker(labels={"": "x"}),
        NewWorker(labels={"x": "y" * 257}),
        NewWorker(labels={str(n): "" for n in range(51)}),
    ],
)
def test_an_invalid_description_of_a_worker_is_rejected(about):
    with pytest.raises(InvalidRequest):
        check_about(about, DEFAULT_LIMITS)


def test_a_worker_may_register_without_details():
    assert check_about(NewWorker(), DEFAULT_LIMITS) == NewWorker()


def test_a_worker_is_silent_after_two_missed_beats_until_it_is_lost() -> None:
    worker = a_worker()
    alive_ms = worker.alive_until - worker.beat_at
    beat_ms = alive_ms // 10

    def is_silent(after_ms: int) -> bool:
        return workers.is_silent(worker, now=worker.beat_at + after_ms, beat_ms=beat_ms)

    assert not is_silent(2 * beat_ms)
    assert is_silent(3 * beat_ms)
    assert is_silent(alive_ms - 1)
    assert not is_silent(alive_ms)
