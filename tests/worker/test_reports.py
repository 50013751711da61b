"""A worker reports the outcome of each job once, even after an outage of the store."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from penstock import Penstock, Retry, Snooze, current
from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.domain.message.lifecycle import State
from penstock.worker.handling import run
from tests.worker.driver import LEASE_MS, LuckyDice


def test_an_act_that_the_store_did_not_take_is_reported_when_it_answers_again(
    app, clock, make_driver
):
    sent = _nothing(app).enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    driver.run_all()

    driver.source.error = StoreUnavailable("the disk is full")
    again_at = driver.turn()
    assert again_at > clock.now()
    before = driver.source.claims
    driver.turn()
    assert driver.source.claims == before  # it is not asked for a while
    driver.source.error = None
    clock.advance(ms=again_at - clock.now())
    driver.turn()

    assert driver.message(sent.id) is None


def test_a_job_whose_result_is_too_large_is_buried_and_its_place_is_free_again(app, make_driver):
    limits = app.open().backend.limits
    assert limits is not None

    @app.job(queue="mail")
    def text(size: int) -> str:
        return "x" * size

    large, small = text.enqueue(limits.max_result_bytes), text.enqueue(3)
    driver = make_driver(slots=2)
    driver.turn()
    driver.run_all()
    driver.turn()  # the server refuses the completion
    driver.turn()

    buried = driver.message(large.id)
    assert buried is not None
    assert (buried.state, buried.attempts) == (State.DEAD, 1)
    assert "the job was done, but the result has 262146 bytes" in buried.reason
    assert small.result("0s") == "xxx"
    assert driver.pump._jobs.free_places == driver.order.places


def test_an_outage_is_logged_once_and_so_is_its_end(app, clock, make_driver, caplog):
    caplog.set_level("INFO", "penstock.worker")
    driver = make_driver()
    for error in (StoreUnavailable("the disk is full"), OSError("gone"), None, None):
        driver.source.error = error
        driver.turn()
        clock.advance(minutes=1)

    lines = [r.getMessage() for r in caplog.records if r.name == "penstock.worker"]
    assert lines == ["waiting for the store: the disk is full", "connected to the store again"]


def test_only_the_ends_that_the_store_did_not_answer_are_sent_again(
    app, clock, make_driver, caplog
):
    job = _nothing(app)
    sent = [job.enqueue() for _ in range(3)]
    driver = make_driver()
    driver.turn()
    driver.run_all()
    driver.source.answered = 1

    driver.turn()
    assert [driver.message(job.id) is None for job in sent] == [True, False, False]
    driver.source.answered = None
    clock.advance(seconds=1)
    driver.turn()

    assert [driver.message(job.id) for job in sent] == [None] * 3
    assert driver.pump.is_empty
    assert "was rejected" not in caplog.text


def test_frequent_progress_is_reported_with_one_extension(app, make_driver):
    @app.job(queue="mail")
    def long() -> Snooze:
        for step in range(100):
            current().progress(step / 100, "walking")
        return Snooze("1m")

    sent = long.enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    driver.run_all()
    driver.turn()

    message = driver.message(sent.id)
    assert message is not None
    assert message.progress == '{"fraction":0.99,"note":"walking"}'


def _nothing(app: Penstock):
    @app.job(queue="mail")
    def nothing() -> None: ...

    return nothing


def test_the_valid_part_of_an_invalid_error_text_is_kept(app, make_driver, caplog):
    caplog.set_level(logging.ERROR)  # pytest-xdist cannot transmit such a line

    @app.job(queue="mail")
    def read() -> None:
        raise FileNotFoundError("no such file: 'caf\udce9'")  # as Python renders undecodable names

    sent, other = read.enqueue(), _nothing(app).enqueue()
    driver = make_driver(slots=2)
    driver.turn()
    driver.run_all()
    driver.turn()

    failed = driver.message(sent.id)
    assert failed is not None
    assert (failed.state, failed.failures) == (State.WAITING, 1)
    assert "no such file: 'caf\ufffd'" in str(failed.last_error)
    assert driver.message(other.id) is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda: current().progress(note="x" * 100_000),
        lambda: current().extend("30d"),
    ],
)
def test_a_report_that_a_running_job_cannot_make_does_not_end_it(app, clock, make_driver, ask):
    @app.job(queue="mail")
    def long() -> None:
        with suppress(InvalidRequest):
            ask()

    sent = long.enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    held = driver.begin()
    run(held, app.handlers, LuckyDice())  # it has asked, and keeps running
    for _ in range(9):
        clock.advance(ms=LEASE_MS // 3)
        driver.turn()

    assert held.stop_reason is None
    driver.end(held)
    driver.turn()
    assert driver.message(sent.id) is None


@pytest.mark.parametrize("outcome", [Snooze, Retry])
def test_a_time_that_no_queue_takes_is_an_error_of_the_job(app, make_driver, outcome):
    @app.job(queue="mail")
    def never() -> None:
        raise outcome("10000d")

    sent = never.enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    driver.run_all()
    driver.turn()

    failed = driver.message(sent.id)
    assert failed is not None
    assert (failed.state, failed.failures) == (State.WAITING, 1)
