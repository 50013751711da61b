"""Which act follows what a handler returns or raises."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock import Bury, Cancel, Retry, Snooze
from penstock.client.values.return_value import ReturnValue
from penstock.domain.errors import InvalidRequest, LeaseLost, TooLarge
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND
from penstock.domain.message.lease import Verb
from penstock.domain.message.outcome import Suspended
from penstock.domain.message.retry import Backoff, Exponential, Fixed, Listed
from penstock.worker.batch import Batch
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.handling import run
from penstock.worker.outcomes import (
    NOT_COMMITTED,
    act_for,
    after_rejection,
    park_unfit_arguments,
    park_unknown_kind,
    time_out,
)
from tests.worker.driver import LuckyDice

NOW = 1_000 * DAY


class AHandler(msgspec.Struct):
    kind: str = "mail"
    is_async: bool = False
    timeout_ms: int | None = None
    backoff: Backoff | None = None
    batch: Batch | None = None
    keeps_logs: bool = False
    keeps_result: bool = False

    def call_with(self, body):
        raise NotImplementedError

    def write_result(self, value):
        return ReturnValue(None, self.kind, "keep").write(value)


class NoHooks:
    @contextmanager
    def around(self, job):
        yield SimpleNamespace(note_result=lambda result: None, is_completed=False)


def some_job(**about) -> ClaimedJob:
    given = {"id": "1", "queue": "q", "receipt": "r", "body": "{}", "kind": "mail"}
    return ClaimedJob(**{**given, "sent_at": NOW, "leased_until": NOW + MINUTE, **about})


def an_act(verb: Verb, **more) -> JobAct:
    return JobAct(receipt="r", verb=verb, **more)


@pytest.mark.parametrize("result", [None, 5, "done", False, [], ValueError])
def test_whatever_a_handler_returns_the_job_is_done(result):
    assert act_for(some_job(), AHandler(), result) == an_act(Verb.COMPLETE, queue=some_job().queue)


@pytest.mark.parametrize(("result", "text"), [(None, "null"), (5, "5"), (["a"], '["a"]')])
def test_a_job_that_keeps_its_result_is_completed_with_it(result, text):
    act = act_for(some_job(), AHandler(keeps_result=True), result)

    assert act == an_act(Verb.COMPLETE, queue=some_job().queue, result=text)


def test_a_job_whose_result_cannot_be_encoded_is_buried_because_its_work_is_done():
    act = act_for(some_job(), AHandler(keeps_result=True), object())

    assert act.verb is Verb.BURY
    assert "the job was done, but" in (act.text or "")


def test_an_outcome_is_not_a_result():
    act = act_for(some_job(), AHandler(keeps_result=True), Snooze("1s"))

    assert (act.verb, act.result) == (Verb.SNOOZE, None)


def test_a_job_whose_result_is_too_large_is_buried_instead():
    done = an_act(Verb.COMPLETE, result="1")

    instead = after_rejection(done, TooLarge("the result has 9 bytes"))

    assert instead == an_act(Verb.BURY, text="the job was done, but the result has 9 bytes")
    assert after_rejection(done, LeaseLost()) is None
    assert after_rejection(an_act(Verb.COMPLETE), TooLarge("")) is None


@pytest.mark.parametrize(
    ("outcome", "verb"), [(Cancel, Verb.CANCEL), (Bury, Verb.BURY), (Retry, Verb.FAIL)]
)
def test_a_returned_outcome_class_counts_as_an_instance_of_it(outcome, verb):
    assert act_for(some_job(), AHandler(), outcome).verb is verb


def test_a_returned_outcome_class_that_needs_an_argument_fails_the_job():
    act = act_for(some_job(), AHandler(), Snooze)

    assert act.verb is Verb.FAIL
    assert "delay" in (act.text or "")


@pytest.mark.parametrize(
    ("outcome", "act"),
    [
        (Snooze("10m"), an_act(Verb.SNOOZE, delay_ms=10 * MINUTE)),
        (Cancel("too late"), an_act(Verb.CANCEL, text="too late")),
        (Cancel(), an_act(Verb.CANCEL)),
        (Bury("no such address"), an_act(Verb.BURY, text="no such address")),
        (Retry("5s", error="451"), an_act(Verb.FAIL, delay_ms=5 * SECOND, text="451")),
        (Retry(), an_act(Verb.FAIL, text="to be tried again")),
        (Retry("0s"), an_act(Verb.FAIL, delay_ms=0, text="to be tried again")),
    ],
)
def test_an_outcome_means_the_same_returned_or_raised(outcome, act):
    assert act_for(some_job(), AHandler(), outcome) == act


def test_a_retry_waits_for_its_own_delay_or_else_for_the_back_off_of_the_job():
    handler = AHandler(backoff=Fixed(7_000))

    assert act_for(some_job(), handler, Retry()).delay_ms == 7_000
    assert act_for(some_job(), handler, Retry("0s")).delay_ms == 0


@pytest.mark.parametrize(
    ("backoff", "failures", "delay_ms"),
    [
        (None, 0, None),
        (Fixed(9), 3, 9),
        (Listed((1, 2)), 0, 1),
        (Listed((1, 2)), 1, 2),
        (Listed((1, 2)), 5, 2),
        (Exponential(first_ms=10, jitter=0), 2, 40),
    ],
)
def test_a_failure_waits_for_the_back_off_of_the_job_or_else_of_the_queue(
    backoff, failures, delay_ms
):
    act = act_for(some_job(failures=failures), AHandler(backoff=backoff), ValueError("no"))

    assert (act.verb, act.delay_ms) == (Verb.FAIL, delay_ms)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_a_handler_that_calls_sys_exit_has_failed(error):
    assert act_for(some_job(), AHandler(), error).verb is Verb.FAIL


def test_how_the_handler_was_called_is_left_out_of_the_places():
    def call():
        raise ValueError("no")

    hooks: Any = NoHooks()
    act = run(some_job(handler=AHandler(), call=call), hooks, LuckyDice())

    assert act.text is not None
    first, place = act.text.splitlines()
    assert first == "ValueError: no"
    assert place.endswith('in call: raise ValueError("no")')


def test_one_that_completed_itself_in_a_transaction_that_failed_is_tried_again():
    act = act_for(some_job(), AHandler(), None, is_completed=True)

    assert (act.verb, act.text) == (Verb.FAIL, NOT_COMMITTED)


def test_a_job_that_took_too_long_is_timed_out():
    act = time_out(some_job(timeout_ms=30_000, handler=AHandler(backoff=Fixed(5))))

    assert act == an_act(Verb.TIME_OUT, delay_ms=5, text="stopped at its time limit of 30s")


def test_an_unknown_kind_is_parked_ever_longer_and_never_given_up():
    delays = []
    now = NOW
    for _ in range(10):
        act = park_unknown_kind(some_job(), now=now)
        assert (act.verb, act.text) == (Verb.SNOOZE, "no handler is known for the kind 'mail'")
        delays.append(act.delay_ms)
        now += act.delay_ms or 0

    assert delays[:4] == [5_000, 5_000, 10_000, 20_000]
    assert delays[-1] == 5 * MINUTE


def test_a_message_without_a_kind_is_parked_too():
    assert park_unknown_kind(some_job(kind=None), now=NOW).text == "it has no kind"


def test_arguments_that_do_not_fit_may_come_from_a_newer_program_for_a_while():
    error = InvalidRequest("job 'mail': there is no argument `colour`")

    young = park_unfit_arguments(some_job(sent_at=NOW - MINUTE), error, now=NOW)
    old = park_unfit_arguments(some_job(sent_at=NOW - HOUR), error, now=NOW)

    assert young == an_act(Verb.SNOOZE, delay_ms=MINUTE, text=str(error))
    assert old == an_act(Verb.BURY, text=str(error))


@pytest.mark.parametrize("wrong", [5, "5", None])
def test_outcomes_take_no_bare_numbers(wrong):
    with pytest.raises(InvalidRequest):
        Snooze(wrong)


@pytest.mark.parametrize("signal", [None, "approved"])
def test_a_suspended_handler_is_snoozed_and_logs_nothing(caplog, signal):
    def suspend():
        try:
            raise Suspended(HOUR, signal=signal)
        except Exception as error:
            raise AssertionError("a handler has swallowed it") from error

    hooks: Any = NoHooks()
    act = run(some_job(handler=AHandler(), call=suspend), hooks, LuckyDice())

    assert act == JobAct(receipt="r", verb=Verb.SNOOZE, delay_ms=HOUR, signal=signal)
    assert caplog.records == []
