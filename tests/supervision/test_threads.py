"""A supervised thread that raises is logged, answers its waiting callers, and is restarted."""

import asyncio
import logging
import threading

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import SupervisedThread, start_logged, start_supervised
from tests.clocks import NOON
from tests.support.waiting import eventually

LOG = "penstock.health"
WAIT_S = 30


class Body:
    """Fails so many times, then runs until it is stopped."""

    def __init__(self, fails: int, error: BaseException | None = None) -> None:
        self.fails = fails
        self.error = error or OSError("No space left on device")
        self.calls = 0
        self.is_running = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> None:
        self.calls += 1
        if self.calls <= self.fails:
            raise self.error
        self.is_running.set()
        self.may_end.wait(WAIT_S)


@pytest.fixture
def health() -> NodeHealth:
    return NodeHealth()


@pytest.mark.parametrize("error", [OSError("full"), SystemExit(1), MemoryError()])
def test_a_thread_that_raises_runs_again(health, caplog, error):
    body = Body(1, error)
    answered: list[StoreUnavailable] = []
    thread = SupervisedThread("a-writer", body, health=health, on_failure=answered.append)

    thread.start()

    assert body.is_running.wait(WAIT_S)
    assert health.troubles() == []
    [answer] = answered
    assert isinstance(answer, StoreUnavailable)
    assert answer.__cause__ is error
    [record] = [r for r in caplog.records if "a-writer" in r.getMessage()]
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    body.may_end.set()
    assert thread.join(WAIT_S)


def test_while_it_does_not_run_the_health_of_the_node_names_it(health, monkeypatch):
    monkeypatch.setattr("penstock.supervision.threads.FIRST_PAUSE_S", 3_600.0)
    thread = SupervisedThread("a-reader", Body(1), health=health)

    thread.start()

    [trouble] = eventually(health.troubles)
    assert (trouble.part, trouble.state) == ("a-reader", "failed")
    assert "No space left on device" in trouble.text
    assert thread.join(WAIT_S)
    assert health.troubles() == []


def test_a_failure_that_repeats_is_logged_once(health, caplog, monkeypatch):
    monkeypatch.setattr("penstock.supervision.threads.LONGEST_PAUSE_S", 0.0)
    body = Body(5)
    thread = SupervisedThread("a-mover", body, health=health)

    thread.start()

    assert body.is_running.wait(WAIT_S)
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert [r.getMessage() for r in errors] == ["a-mover failed and is being restarted"]
    body.may_end.set()
    thread.join(WAIT_S)


def test_an_answer_that_fails_does_not_end_the_thread(health, caplog):
    def fail(_: StoreUnavailable) -> None:
        raise RuntimeError("a closed loop")

    body = Body(1)
    thread = SupervisedThread("a-writer", body, health=health, on_failure=fail)

    thread.start()

    assert body.is_running.wait(WAIT_S)
    assert "callers that waited for a-writer were not answered" in caplog.text
    body.may_end.set()
    thread.join(WAIT_S)


def test_a_thread_for_one_piece_of_work_is_logged_and_answers(caplog):
    answered: list[StoreUnavailable] = []

    start_logged("a-day", Body(1), on_failure=answered.append).join(WAIT_S)

    assert "No space left on device" in str(answered[0])
    assert "a-day failed" in caplog.text


def test_a_task_that_raises_runs_again(health, caplog):
    calls: list[NodePart] = []

    async def run(part: NodePart) -> None:
        calls.append(part)
        if len(calls) == 1:
            raise ValueError("a mistake")

    async def main() -> None:
        await asyncio.wait_for(start_supervised("a-sweeper", run, health=health), WAIT_S)

    asyncio.run(main())

    assert len(calls) == 2
    assert "a-sweeper failed and is being restarted" in caplog.text
    assert health.troubles() == []


def test_a_part_that_is_stuck_is_named_and_logged_until_it_moves(health, caplog):
    part = health.add(NodePart("writer", stuck_ms=60_000, has_work=lambda: True))

    health.look(NOON)
    assert health.troubles() == []
    health.look(NOON + 60_000)
    health.look(NOON + 61_000)

    [trouble] = health.troubles()
    assert (trouble.part, trouble.state) == ("writer", "stuck")
    part.moves += 1
    health.look(NOON + 62_000)
    assert health.troubles() == []
    logged = [r.getMessage() for r in caplog.records if r.name == LOG]
    assert logged == [
        "writer is stuck: no work finished for 60 s while some was waiting",
        "writer is working again",
    ]
