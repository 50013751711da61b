"""An unexpected error in a thread of a store is logged, its callers are answered, it restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.store.announcements import Hints
from penstock.store.sqlite.write_lock import WriteLock
from penstock.supervision.health import NodeHealth
from tests.factories import a_new_message
from tests.store.commit.test_request_timeouts import busy_writer, pass_time
from tests.store.driver import WAIT_S
from tests.support.waiting import eventually

MISTAKE = "an unforeseen mistake"


@pytest.fixture
def mail(driver):
    return driver.queue()


def fail_once(owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The next call of this function raises; returns the calls that did."""
    does: Callable[..., Any] = getattr(owner, name)
    failed: list[str] = []

    def fail(*args: Any, **more: Any) -> Any:
        if not failed:
            failed.append(name)
            raise ValueError(MISTAKE)
        return does(*args, **more)

    monkeypatch.setattr(owner, name, fail)
    return failed


def sends_again(driver, mail) -> bool:
    """Requests at the moment of the failure are refused, too."""
    try:
        return bool(driver.send(mail))
    except StoreUnavailable:
        return False


@pytest.fixture
def long_pause(monkeypatch):
    """A part that has failed does not restart until the test is over."""
    monkeypatch.setattr("penstock.supervision.threads.FIRST_PAUSE_S", 0.3)


def assert_logged(caplog: pytest.LogCaptureFixture, part: str) -> None:
    def records() -> list[logging.LogRecord]:
        return [r for r in caplog.records if r.getMessage().startswith(f"{part} failed")]

    eventually(records)
    [record] = records()
    assert record.exc_info is not None
    assert MISTAKE in str(record.exc_info[1])


def test_a_writer_that_fails_answers_its_callers_and_restarts(
    driver, mail, monkeypatch, caplog, long_pause
):
    [writer] = driver.store._commits._lanes
    fail_once(writer, "_run_some", monkeypatch)

    with pytest.raises(StoreUnavailable, match=MISTAKE):
        driver.submit_send(mail).result(WAIT_S)

    assert_logged(caplog, "writer")
    assert [one.part for one in driver.store.health.troubles()] == ["writer"]
    eventually(lambda: not driver.store.health.troubles())
    assert driver.send(mail)


def test_a_writer_that_fails_after_a_commit_answers_with_what_was_committed(
    driver, mail, monkeypatch, caplog
):
    [writer] = driver.store._commits._lanes
    fail_once(writer, "_on_commit", monkeypatch)

    assert driver.send(mail)

    eventually(lambda: any("writer failed" in r.getMessage() for r in caplog.records))
    assert_logged(caplog, "writer")
    eventually(lambda: sends_again(driver, mail))
    assert driver.counts(mail).ready == 2


def test_a_task_whose_writer_fails_is_answered(driver, mail, monkeypatch):
    [writer] = driver.store._commits._lanes
    fail_once(writer, "_commit", monkeypatch)

    async def send() -> Any:
        return await asyncio.wait_for(
            driver.store.send([a_new_message(mail, now=driver.now)]), WAIT_S
        )

    with pytest.raises(StoreUnavailable, match=MISTAKE):
        asyncio.run(send())
    eventually(lambda: sends_again(driver, mail))


def test_a_reader_that_fails_answers_its_caller_and_restarts(
    driver, mail, monkeypatch, caplog, long_pause
):
    fail_once(driver.store.readers, "_run", monkeypatch)

    with pytest.raises(StoreUnavailable, match=MISTAKE):
        driver.counts(mail)

    assert_logged(caplog, "readers")
    assert [one.part for one in driver.store.health.troubles()] == ["readers"]
    assert driver.counts(mail).ready == 0
    eventually(lambda: not driver.store.health.troubles())


def test_a_wake_up_thread_that_fails_restarts(driver, monkeypatch, caplog, long_pause):
    store = driver.store
    wakeups = store.wakeups if store.backend == "postgres" else store._coordination._wakeups
    failed = fail_once(wakeups, "_send_announcements", monkeypatch)
    monkeypatch.setattr(wakeups, "_listeners", ["a peer"], raising=False)

    wakeups.announce(Hints({1: 1}))

    eventually(lambda: store.health.troubles())
    assert failed
    assert_logged(caplog, "penstock-wakeups")
    monkeypatch.setattr(wakeups, "_listeners", [], raising=False)
    eventually(lambda: not store.health.troubles())
    assert wakeups._thread.is_alive()


def test_a_watchdog_that_fails_restarts(driver, mail, monkeypatch, caplog):
    failed = fail_once(driver.store._watchdog, "_expire_unanswered", monkeypatch)

    eventually(lambda: failed)
    eventually(lambda: not driver.store.health.troubles())

    assert_logged(caplog, "penstock-watchdog")
    with busy_writer(driver.store):
        ticket = driver.submit_send(mail)
        pass_time(driver.store)
        with pytest.raises(StoreUnavailable):
            ticket.result(WAIT_S)


def test_a_thread_that_waits_for_other_processes_answers_when_it_fails(
    tmp_path: Path, monkeypatch, caplog
):
    rival, health = WriteLock(tmp_path / "penstock.db"), NodeHealth()
    ours = WriteLock(tmp_path / "penstock.db", health=health)
    assert rival.acquire()
    fail_once(ours, "_lock_both", monkeypatch)

    with pytest.raises(StoreUnavailable, match=MISTAKE):
        ours.acquire()

    assert_logged(caplog, "penstock-write-lock")
    rival.release()
    assert ours.acquire()
    ours.release()
    ours.close()
    rival.close()


def test_a_writer_that_hangs_is_stuck_until_it_moves(driver, mail):
    with busy_writer(driver.store):
        pass_time(driver.store, 1 << 20)
        assert [(one.part, one.state) for one in driver.store.health.troubles()] == [
            ("writer", "stuck")
        ]

    assert driver.send(mail)
    pass_time(driver.store, 0)
    assert driver.store.health.troubles() == []
