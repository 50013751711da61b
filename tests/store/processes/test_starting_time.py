"""The time of a SQLite file at a start: the wall clock was ahead once, and is right now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.store.store_time import MAX_CARRY_MS
from penstock.outbound import clock as clocks
from penstock.settings import Settings
from penstock.store.maintenance.clock_mark import read_mark
from penstock.wiring.broker import Broker, open_broker
from tests.factories import a_new_message, some_settings
from tests.store.driver import StoreDriver

ODD = MINUTE  # how long a test may take between two looks at a clock

Start = Callable[[int], Broker]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Opens the store like a process whose wall clock is ahead by `ahead_ms`."""
    real = clocks.wall_ms
    with ExitStack() as stack:

        def one(ahead_ms: int) -> Broker:
            monkeypatch.setattr(clocks, "wall_ms", lambda: real() + ahead_ms)
            monkeypatch.setattr("penstock.wiring.broker.wall_ms", clocks.wall_ms)
            broker = open_broker(Settings(data=str(tmp_path)))
            stack.callback(broker.close)
            return broker

        yield one


def ahead_ms(broker: Broker) -> int:
    """How far the store's time is ahead of the wall clock."""
    return broker.clock.now() - broker.wall.now()


def use(broker: Broker) -> None:
    """Something is written at this time."""
    now = broker.clock.now()
    queue = broker.store.write(lambda s: s.queues.add("used", some_settings(), now=now)).result()
    broker.store.send([a_new_message(queue, now=now)]).result()


def test_a_start_with_a_clock_in_the_future_does_not_last(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = start(2 * DAY)
    use(wrong)
    wrong.close()

    right = start(0)

    assert abs(ahead_ms(right)) < ODD
    assert right.store.read(read_mark).result() - right.wall.now() < ODD
    [record] = [r for r in caplog.records if r.name == "penstock.store"]
    assert record.levelno == logging.WARNING
    assert "the store's time is set back from" in record.getMessage()


def test_a_clock_that_was_set_back_a_little_is_waited_for(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    before = start(MAX_CARRY_MS - ODD)
    use(before)
    before.close()

    after = start(0)

    assert MAX_CARRY_MS - 2 * ODD < ahead_ms(after) <= MAX_CARRY_MS
    assert not caplog.records


def test_a_clock_that_was_never_set_does_not_set_the_store_back(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    right = start(0)
    use(right)
    now = right.clock.now()
    right.close()

    unset = start(-now)  # 1970

    assert unset.clock.now() >= now
    assert "was never set; the store's time continues at" in caplog.text


def test_a_store_that_is_in_use_is_not_set_back(start: Start) -> None:
    """The clock was corrected while a process runs: it and later ones keep its time."""
    running = start(2 * DAY)
    use(running)

    late = start(0)

    assert abs(late.clock.now() - running.clock.now()) < ODD
    running.close()
    later = start(0)
    assert abs(later.clock.now() - late.clock.now()) < ODD
    late.close()
    later.close()
    assert abs(ahead_ms(start(0))) < ODD


def test_a_process_that_uses_a_time_of_its_own_keeps_it(
    start: Start, tmp_path: Path, driver: StoreDriver
) -> None:
    """Like a program under test with a clock of its own, on the same file."""
    driver.send(driver.queue())

    other = start(0)

    assert other.clock.now() >= driver.now
    assert 0 <= driver.read(read_mark) - driver.now < ODD


def test_the_clock_may_jump_while_the_store_is_in_use(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start(0)
    real, began = clocks.wall_ms, broker.clock.now()
    for jump_ms in (HOUR, -2 * HOUR, DAY, -11 * DAY):
        monkeypatch.setattr(clocks, "wall_ms", lambda jump_ms=jump_ms: real() + jump_ms)
        broker.run_duties()
        assert 0 <= broker.clock.now() - began < ODD
        assert abs(broker.wall.now() - real() - jump_ms) < ODD
    messages = [r.getMessage() for r in caplog.records if r.name == "penstock.clock"]
    assert len(messages) == 1, "logged once, and due again only after half a minute"
    assert "behind the wall clock" in messages[0]


def test_a_process_that_only_started_has_left_its_time(start: Start) -> None:
    """What it writes besides messages uses the same time."""
    wrong = start(2 * DAY)
    duty = wrong.store.write(
        lambda s: s.duties.lead("d", holder="a", for_ms=DAY, now=wrong.clock.now())
    ).result()
    wrong.close()

    mark = start(0).store.read(read_mark).result()

    assert duty
    assert abs(mark - clocks.wall_ms()) < ODD
