"""What jobs log and print is kept with their attempts."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from penstock import Penstock, Retry
from penstock.client.resources.attempt_logs import AttemptLogClient
from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.worker.attempt_log import EVERY_MS, JobLogBuffer, capture_logs

_log = logging.getLogger("shop.mail")


@pytest.fixture
def captured(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo after the test what `capture_logs` installs; pytest changes streams with each phase."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", logging.INFO)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)

    @app.job(queue="mail", logs="keep", backoff="0s", attempts=5)
    def send(to: str) -> None:
        _log.info("sent to %s", to)
        print("one\ntwo", end="")
        if to == "bob":
            raise Retry("0s")

    @app.job(queue="mail")
    def quiet() -> None:
        _log.info("not kept")


@pytest.mark.usefixtures("captured")
def test_lines_are_kept_with_the_attempt_before_its_end_is_reported(app, make_driver):
    capture_logs(app)
    sent, other = app.enqueue("send", {"to": "ada"}, queue="mail"), app.enqueue("quiet", {})
    driver = make_driver(slots=3)
    driver.turn()
    driver.run_all()
    driver.turn()

    assert app.jobs.get(sent).state == "done"
    logs = _logs(app, sent.id)
    assert [(line.level, line.source, line.text) for line in logs] == [
        ("info", "shop.mail", "sent to ada"),
        ("print", "stdout", "one"),
        ("print", "stdout", "two"),
    ]
    assert _logs(app, other.id) == []


@pytest.mark.usefixtures("captured")
def test_each_attempt_has_lines_of_its_own(app, clock, make_driver):
    capture_logs(app)
    sent = app.enqueue("send", {"to": "bob"}, queue="mail")
    driver = make_driver(slots=1)
    for _ in range(4):
        driver.turn()
        driver.run_all()
        clock.advance(seconds=1)

    assert {line.lease_no for line in _logs(app, sent.id)} >= {1, 2}


@pytest.mark.usefixtures("captured")
def test_lines_are_sent_while_the_job_runs_and_a_reader_continues_with_the_cursor(
    app, clock, make_driver
):
    capture_logs(app)
    sent = app.enqueue("send", {"to": "ada"}, queue="mail")
    driver = make_driver(slots=1)
    driver.turn()
    job = driver.begin()
    job.log.add("info", "shop.mail", "10 of 200")
    assert driver.turn() <= clock.now() + EVERY_MS
    clock.advance(ms=EVERY_MS)
    driver.turn()

    logs = AttemptLogClient(app.backend.channel)
    first = logs.of(sent.id)
    assert [line.text for line in first.lines] == ["10 of 200"]
    job.log.add("info", "shop.mail", "20 of 200")
    clock.advance(ms=EVERY_MS)
    driver.turn()

    assert [line.text for line in logs.of(sent.id, cursor=first.next).lines] == ["20 of 200"]


@pytest.mark.usefixtures("captured")
def test_lines_are_sent_again_while_the_store_does_not_answer_and_are_kept_once(
    app, clock, make_driver
):
    capture_logs(app)
    sent = app.enqueue("send", {"to": "ada"}, queue="mail")
    driver = make_driver(slots=1)
    driver.turn()
    driver.run_all()
    driver.source.error = StoreUnavailable("gone")
    driver.turn()
    driver.source.error = None
    clock.advance(seconds=1)
    driver.turn()

    assert len(_logs(app, sent.id)) == 3
    assert app.jobs.get(sent).state == "done"


def test_a_job_that_lost_its_lease_keeps_no_more_lines(app, make_driver, captured):
    capture_logs(app)
    sent = app.enqueue("send", {"to": "ada"}, queue="mail")
    driver = make_driver(slots=1)
    driver.turn()
    app.jobs.cancel(sent)
    driver.run_all()
    driver.turn()

    assert _logs(app, sent.id) == []


def test_a_log_that_is_too_long_ends_with_a_line_that_says_so(clock):
    buffer = JobLogBuffer(clock)
    for _ in range(2_000):
        buffer.add("info", "shop", "x" * 100)
    lines = buffer.take()

    assert lines[-1].text.endswith("the rest was not kept")
    assert len("".join(line.text for line in lines)) < DEFAULT_LIMITS.max_log_bytes


def test_lines_of_async_jobs_that_run_at_the_same_time_are_kept_apart(
    timed_app, start, monkeypatch
):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)

    @timed_app.job(queue="mail", logs="keep")
    async def speak(text: str) -> None:
        for _ in range(3):
            print(text)
            await asyncio.sleep(0)

    sent = {text: speak.enqueue(text) for text in "ab"}
    start(slots=2)
    for one in sent.values():
        timed_app.jobs.wait(one, timeout="60s")

    for text, one in sent.items():
        assert [line.text for line in _logs(timed_app, one.id)] == [text] * 3


def test_a_setting_that_is_not_known_is_rejected(app):
    with pytest.raises(InvalidRequest, match='logs takes "keep"'):
        app.job(logs=True)(lambda: None)


def _logs(app: Penstock, message_id: str):
    return AttemptLogClient(app.backend.channel).of(message_id).lines
