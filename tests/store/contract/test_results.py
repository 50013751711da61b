"""Results are kept with the endings of their messages, and only with completions."""

from __future__ import annotations

import pytest

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.result import MessageResult
from penstock.ports.store import Acted
from tests.factories import an_act


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE, max_attempts=1)


@pytest.fixture
def endings(driver):
    """Ids of messages that the store has reported as ended."""
    found: list[str] = []
    driver.store.listen_for_endings(found.extend)
    return found


def results_of(driver, *ids: str) -> dict[str, MessageResult]:
    return driver.read(lambda s: s.results.of(ids))


def result_of(driver, message_id: str) -> MessageResult:
    return results_of(driver, message_id)[message_id]


def test_a_completion_keeps_its_result(driver, mail):
    message_id = driver.send(mail)
    [held] = driver.claim(mail)

    driver.act(Verb.COMPLETE, held, result='{"total":"9.99 \\u0000 é"}')

    assert result_of(driver, message_id) == MessageResult(
        id=message_id,
        queue="mail",
        state=State.DONE,
        result='{"total":"9.99 \\u0000 é"}',
        finished_at=driver.now,
    )


@pytest.mark.parametrize("fields", [{"text": "by hand"}, {"is_late_ok": True}])
def test_a_completion_that_is_not_plain_keeps_its_result_too(driver, mail, fields):
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.clock.advance(minutes=2)
    if "is_late_ok" in fields:  # its lease has expired
        driver.act(Verb.RELEASE, held)

    driver.act(Verb.COMPLETE, held, result="17", **fields)

    assert result_of(driver, held.id).result == "17"


def test_completions_with_and_without_a_result_share_a_batch(driver, mail):
    driver.send_many(mail, 3)
    a, b, c = driver.claim(mail, 3)

    answers = driver.store.act(
        [
            an_act(Verb.COMPLETE, a, now=driver.now, result="1"),
            an_act(Verb.COMPLETE, b, now=driver.now),
            an_act(Verb.COMPLETE, c, now=driver.now, result="null"),
            an_act(Verb.COMPLETE, a, now=driver.now, result="2"),  # too late
        ]
    ).result()

    assert [type(answer) for answer in answers] == [Acted, Acted, Acted, LeaseLost]
    found = results_of(driver, a.id, b.id, c.id)
    assert [found[m.id].result for m in (a, b, c)] == ["1", None, "null"]
    assert {one.state for one in found.values()} == {State.DONE}


def test_a_completion_that_comes_too_late_leaves_no_result(driver, mail):
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.act(Verb.COMPLETE, held, result="1")

    assert isinstance(driver.act(Verb.COMPLETE, held, result="2"), LeaseLost)

    assert result_of(driver, held.id).result == "1"


@pytest.mark.parametrize("verb", [Verb.BURY, Verb.CANCEL, Verb.TIME_OUT])
def test_only_a_completion_keeps_a_result(driver, mail, verb):
    driver.send(mail)
    [held] = driver.claim(mail)

    driver.act(verb, held, result="1")

    assert (result_of(driver, held.id).is_ended, result_of(driver, held.id).result) == (True, None)


def test_what_became_of_a_message_that_has_no_result(driver, mail, clock):
    done, dead, cancelled, waiting = driver.send_many(mail, 4)
    held = {m.id: m for m in driver.claim(mail, 3)}
    driver.complete(held[done])
    driver.act(Verb.FAIL, held[dead], text="no answer")
    driver.act(Verb.CANCEL, held[cancelled], text="not needed")

    found = results_of(driver, done, dead, cancelled, waiting, "unknown")

    states = {m: (one.state, one.is_ended, one.result) for m, one in found.items()}
    assert states == {
        done: (State.DONE, True, None),
        dead: (State.DEAD, True, None),
        cancelled: (State.CANCELLED, True, None),
        waiting: (State.READY, False, None),
    }
    assert (found[dead].error, found[dead].reason) == ("no answer", "attempts_exhausted")
    assert found[dead].finished_at == found[cancelled].finished_at == driver.now
    assert found[cancelled].reason == "not needed"
    assert driver.read(lambda s: s.results.running(list(found))) == {waiting}


def test_a_dead_letter_is_dead_for_those_who_wait_for_it(driver):
    driver.queue("mail-dead")
    mail = driver.queue("mail", dead_letter_queue="mail-dead")
    driver.send(mail)
    [held] = driver.claim(mail)

    driver.act(Verb.BURY, held, text="no such address")

    found = result_of(driver, held.id)
    assert (found.state, found.reason) == (State.DEAD, "no such address")
    assert driver.read(lambda s: s.results.running([held.id])) == set()


def test_the_last_ending_of_a_message_counts(driver, mail):
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.act(Verb.BURY, held)
    driver.write(lambda s: s.messages.redrive(mail.queue_no, to=None, limit=1, now=driver.now))
    assert not result_of(driver, held.id).is_ended
    driver.clock.advance(days=1)
    [again] = driver.claim(mail)
    driver.act(Verb.COMPLETE, again, result="1")

    assert (result_of(driver, held.id).state, result_of(driver, held.id).result) == (
        State.DONE,
        "1",
    )


def test_a_result_is_dropped_with_its_day(driver, mail):
    driver.keeps_history = False
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.act(Verb.COMPLETE, held, result="1")
    day = driver.now // DAY
    driver.clock.advance(days=1)

    driver.write(lambda s: s.maintenance.drop_day(day, now=driver.now))

    assert results_of(driver, held.id) == {}


def test_endings_with_a_result_and_other_endings_but_done_are_reported(driver, mail, endings):
    driver.send_many(mail, 4)
    kept, dropped, dead, cancelled = driver.claim(mail, 4)
    driver.act(Verb.COMPLETE, kept, result="1")
    driver.complete(dropped)
    driver.act(Verb.BURY, dead)
    driver.alter(cancelled.id, lambda m, _: lifecycle.cancel(m, reason="so", is_running_ok=True))

    assert endings == [kept.id, dead.id, cancelled.id]


def test_all_endings_of_this_process_are_reported_while_it_waits(driver, mail, endings):
    driver.send_many(mail, 2)
    first, second = driver.claim(mail, 2)

    driver.store.watch_endings(True)
    driver.complete(first)
    driver.store.watch_endings(False)
    driver.complete(second)

    assert endings == [first.id]
