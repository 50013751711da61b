"""Chunk handlers: one call for many jobs, one end for each."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from penstock import Batch, Bury, Cancel, Item, Penstock, Retry, Snooze, current, step_sync
from penstock.domain.errors import LeaseLost
from penstock.domain.message.lifecycle import State
from penstock.worker.claimed_job import StopReason
from penstock.worker.lease_keeper import NOTICE_MS


class Mail(msgspec.Struct):
    to: str
    subject: str = ""


def test_a_chunk_is_full_or_its_first_job_has_waited(app, clock, make_driver):
    calls = _collecting(app, Batch(max=3, wait="1s"))
    app.handlers.jobs["take"].enqueue_many([{"to": str(n)} for n in range(4)])
    driver = make_driver(slots=2)

    driver.turn()
    driver.turn()
    driver.run_all()
    assert calls == [["0", "1", "2"]]

    clock.advance(ms=999)
    driver.turn()
    assert not driver.slots.waiting
    assert driver.turn() == clock.now() + 1

    clock.advance(ms=1)
    driver.turn()
    driver.run_all()
    assert calls[1:] == [["3"]]


def test_each_job_of_a_chunk_ends_as_its_handler_settles_it(app, make_driver):
    @app.job(queue="mail", batch=Batch(max=6))
    def send(items: list[Item[Mail]]) -> None:
        for item in items:
            match item.value.to:
                case "retry":
                    item.settle(Retry("10m"))
                case "raise":
                    item.settle(KeyError("raise"))
                case "snooze":
                    item.settle(Snooze("5m"))
                case "cancel":
                    item.settle(Cancel("gone"))
                case "bury":
                    item.settle(Bury)

    kinds = ("done", "retry", "raise", "snooze", "cancel", "bury")
    sent = {to: send.enqueue(Mail(to)) for to in kinds}
    driver = make_driver(slots=6)
    driver.turn()
    driver.run_all()
    before = driver.source.claims
    driver.turn()

    assert driver.source.claims == before + 1  # all of them in one exchange
    found = {to: app.jobs.get(one) for to, one in sent.items()}
    assert {to: job.state for to, job in found.items()} == {
        "done": State.DONE,
        "retry": State.WAITING,
        "raise": State.WAITING,
        "snooze": State.WAITING,
        "cancel": State.CANCELLED,
        "bury": State.DEAD,
    }
    assert found["raise"].last_error.startswith("KeyError: 'raise'")
    assert [found[to].failures for to in ("retry", "raise", "snooze")] == [1, 1, 0]


def test_a_returned_list_has_an_outcome_for_each_job(app, make_driver):
    @app.job(queue="mail", batch=Batch(max=3))
    def send(mails: list[Mail]) -> list[object]:
        return [7, Cancel("gone"), ValueError("no")]

    sent = [send.enqueue(Mail(str(n))) for n in range(3)]
    _run_once(make_driver(slots=3))

    assert [app.jobs.get(one).state for one in sent] == [
        State.DONE,
        State.CANCELLED,
        State.WAITING,
    ]


def test_an_entry_of_a_returned_list_is_the_result_of_its_job(app, make_driver):
    @app.job(queue="mail", batch=Batch(max=3))
    def double(items: list[Item[int]]) -> list[int | Cancel]:
        items[2].settle(7)
        return [2 * items[0].value, Cancel("odd"), 0]

    @app.job(queue="mail", batch=Batch(max=1))
    def dropped(numbers: list[int]) -> None: ...

    first, second, third = (double.enqueue(n) for n in (1, 2, 3))
    other = dropped.enqueue(1)
    _run_once(make_driver(slots=4))

    assert (first.result("0s"), third.result("0s"), other.result("0s")) == (2, 7, None)
    assert second.state() is State.CANCELLED


def test_a_list_of_another_length_fails_the_jobs_that_were_not_settled(app, make_driver):
    @app.job(queue="mail", batch=Batch(max=2))
    def send(items: list[Item[Mail]]) -> list[None]:
        items[0].settle()
        return [None]

    first, second = (send.enqueue(Mail(to)) for to in "ab")
    _run_once(make_driver(slots=2))

    assert app.jobs.get(first).state is State.DONE
    assert "1 outcomes was returned for 2 jobs" in app.jobs.get(second).last_error


def test_an_exception_fails_the_jobs_that_were_not_settled(app, make_driver):
    @app.job(queue="mail", batch=Batch(max=2))
    def send(items: list[Item[Mail]]) -> None:
        items[0].settle()
        raise OSError("the mail server is gone")

    first, second = (send.enqueue(Mail(to)) for to in "ab")
    _run_once(make_driver(slots=2))

    assert app.jobs.get(first).state is State.DONE
    assert "the mail server is gone" in app.jobs.get(second).last_error


def test_a_chunk_has_jobs_of_one_group_only(app, clock, make_driver):
    calls = _collecting(app, Batch(max=10, wait="1s", by="group"))
    job = app.handlers.jobs["take"]
    for n in range(6):
        job.using(group=f"g{n % 2}").enqueue({"to": str(n)})
    driver = make_driver(slots=6)
    driver.turn()
    clock.advance(seconds=1)
    driver.turn()
    driver.run_all()

    assert sorted(calls) == [["0", "2", "4"], ["1", "3", "5"]]


def test_in_an_ordered_queue_a_chunk_takes_a_row_of_one_group_and_the_next_waits(app, make_driver):
    app.queue("mail", ordering="group")
    calls = _collecting(app, Batch(max=2, wait="1s", by="group"))
    job = app.handlers.jobs["take"].using(group="ada")
    job.enqueue_many([{"to": str(n)} for n in range(4)])
    driver = make_driver(slots=4)

    driver.turn()
    assert len(driver.slots.waiting) == 1
    driver.run_all()
    driver.turn()
    driver.turn()
    driver.run_all()

    assert calls == [["0", "1"], ["2", "3"]]


def test_in_an_ordered_queue_jobs_behind_a_failed_one_are_given_back(app, make_driver):
    app.queue("mail", ordering="group")

    @app.job(queue="mail", batch=Batch(max=2, by="group"))
    def send(mails: list[Mail]) -> None:
        raise OSError("no")

    sent = [send.using(group="ada").enqueue(Mail(str(n))) for n in range(4)]
    driver = make_driver(slots=4)
    driver.turn()
    driver.run_all()
    driver.turn()

    states = [app.jobs.get(one).state for one in sent]
    assert states[:2] == [State.WAITING] * 2
    assert app.jobs.get(sent[3]).attempts == 0
    assert not driver.slots.waiting


def test_a_full_slot_of_chunks_claims_no_more(app, clock, make_driver):
    _collecting(app, Batch(max=2, wait="1s"))
    app.handlers.jobs["take"].enqueue_many([{"to": str(n)} for n in range(9)])
    driver = make_driver(slots=1)
    for _ in range(5):
        driver.turn()

    assert len(driver.slots.waiting) == 1
    assert app.jobs.count("mail").leased <= 3


def test_a_job_that_has_crashed_a_worker_gets_a_call_of_its_own(app, make_driver):
    calls = _collecting(app, Batch(max=10, wait="1s"))
    job = app.handlers.jobs["take"]
    crashed = job.enqueue({"to": "bad"})
    driver = make_driver(slots=5)
    driver.turn()
    [claimed] = driver.pump._jobs.all
    driver.pump._end(claimed, _crash(claimed))
    driver.pump._chunks.remove(claimed)
    driver.turn()
    job.enqueue_many([{"to": str(n)} for n in range(3)])
    driver.pump.is_woken = True
    driver.turn()
    driver.run_all()

    assert calls == [["bad"]]
    driver.turn()
    assert app.jobs.get(crashed).state is State.DONE


def test_jobs_that_gather_are_given_back_at_a_drain(app, make_driver):
    _collecting(app, Batch(max=10, wait="1m"))
    job = app.handlers.jobs["take"]
    sent = [job.enqueue({"to": str(n)}) for n in range(3)]
    driver = make_driver(slots=5)
    driver.turn()
    driver.pump.drain()
    driver.turn()

    assert driver.pump.is_empty
    assert [(app.jobs.get(s).state, app.jobs.get(s).attempts) for s in sent] == [
        (State.READY, 0)
    ] * 3


def test_leases_of_gathering_and_running_jobs_are_extended(app, clock, make_driver):
    _collecting(app, Batch(max=2, wait="10m"))
    job = app.handlers.jobs["take"]
    sent = [job.enqueue({"to": str(n)}) for n in range(3)]
    driver = make_driver(slots=3)
    driver.turn()
    driver.begin()
    for _ in range(4):
        clock.advance(seconds=10)
        driver.turn()

    assert all(app.jobs.get(one).state is State.LEASED for one in sent)


def test_a_cancelled_job_of_a_chunk_does_not_stop_the_others(app, clock, make_driver):
    seen: list[Any] = []

    @app.job(queue="mail", batch=Batch(max=2))
    def send(items: list[Item[Mail]]) -> None:
        with pytest.raises(LeaseLost):
            items[1].extend()
        seen.append((current().is_stopping, [item.is_stopping for item in items]))

    first, second = (send.enqueue(Mail(to)) for to in "ab")
    driver = make_driver(slots=2)
    driver.turn()
    chunk = driver.begin()
    app.jobs.cancel(second, reason="not needed")
    clock.advance(ms=NOTICE_MS)
    driver.turn()
    driver.end(chunk)
    driver.turn()

    assert seen == [(False, [False, True])]
    assert app.jobs.get(second).reason == "not needed"
    assert app.jobs.get(first).state is State.DONE


def test_a_chunk_stops_when_all_its_jobs_were_cancelled(app, clock, make_driver):
    stops: list[str] = []
    _collecting(app, Batch(max=2))
    sent = [app.handlers.jobs["take"].enqueue({"to": to}) for to in "ab"]
    driver = make_driver(slots=2)
    driver.turn()
    chunk = driver.begin()
    chunk.stop_handler = lambda: stops.append("stopped")
    for one in sent:
        app.jobs.cancel(one)
    clock.advance(ms=NOTICE_MS)
    driver.turn()

    assert stops == ["stopped"]
    assert chunk.stop_reason is StopReason.LEASE_LOST


def test_the_time_limit_of_a_chunk_counts_from_its_call(app, clock, make_driver):
    @app.job(queue="mail", batch=Batch(max=2, wait="4s"), timeout="10s")
    def send(mails: list[Mail]) -> None: ...

    sent = send.enqueue(Mail("ada"))
    driver = make_driver(slots=2)
    driver.turn()
    clock.advance(seconds=4)
    driver.turn()
    chunk = driver.begin()
    clock.advance(seconds=9)
    driver.turn()
    assert chunk.stop_reason is None

    clock.advance(seconds=1)
    driver.turn()

    assert chunk.stop_reason is StopReason.TIMED_OUT
    assert app.jobs.get(sent).reason == "timed_out"


def test_an_async_chunk_handler_settles_its_jobs(timed_app, start):
    @timed_app.job(queue="mail", batch=Batch(max=3, wait="10ms"))
    async def send(items: list[Item[Mail]]) -> None:
        await asyncio.sleep(0)
        items[0].settle(Cancel)

    sent = send.enqueue_many([send.args(Mail(to)) for to in "abc"])
    start(slots=3)

    states = [timed_app.jobs.wait(one, timeout="60s").state for one in sent]
    assert states == [State.CANCELLED, State.DONE, State.DONE]


def test_a_burst_does_not_wait_for_a_chunk_to_fill(app, clock, make_driver):
    calls = _collecting(app, Batch(max=10, wait="1h"))
    app.handlers.jobs["take"].enqueue({"to": "ada"})
    driver = make_driver(slots=2, is_burst=True)
    for _ in range(3):
        driver.turn()
        clock.advance(seconds=1)
    driver.run_all()

    assert calls == [["ada"]]


def test_what_belongs_to_one_job_is_refused_for_a_whole_chunk(app, make_driver):
    @app.job(queue="mail", batch=Batch(max=2))
    def send(mails: list[Mail]) -> None:
        with pytest.raises(Exception, match="use its Item"):
            current().complete(tx=None)
        with pytest.raises(Exception, match="use its Item"):
            step_sync("charge", lambda: 5)

    sent = [send.enqueue(Mail(to)) for to in "ab"]
    _run_once(make_driver(slots=2))

    assert [app.jobs.get(one).state for one in sent] == [State.DONE] * 2


def _collecting(app: Penstock, batch: Batch) -> list[list[str]]:
    calls: list[list[str]] = []

    @app.job(queue="mail", batch=batch)
    def take(items: list[Item[Mail]]) -> None:
        calls.append([item.value.to for item in items])

    return calls


def _run_once(driver: Any) -> None:
    driver.turn()
    driver.run_all()
    driver.turn()


def _crash(job: Any) -> Any:
    from penstock.domain.message.lease import Verb
    from penstock.worker.claimed_job import JobAct

    return JobAct(receipt=job.receipt, verb=Verb.CRASH, text="killed")
