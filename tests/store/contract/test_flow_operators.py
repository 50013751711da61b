"""What operators do to flows and their members: cancel, complete, redrive."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.errors import MessageNotFound, WrongState
from penstock.domain.flow.flow import Flow, FlowOutcome
from penstock.domain.flow.member import MemberRole, RunsOn
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Queue
from penstock.store.maintenance import checks
from tests.store import flows
from tests.store.driver import EVERYTHING, StoreDriver
from tests.store.flows import a_callback, a_member


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue(max_attempts=1)


def claim_and(driver: StoreDriver, queue: Queue, verb: Verb) -> None:
    [message] = driver.claim(queue)
    driver.act(verb, message)


def cancel(driver: StoreDriver, flow: Flow, reason: str | None = None) -> None:
    driver.write(lambda s: s.flows.cancel(flow.id, reason=reason, now=driver.now))
    while driver.write(
        lambda s: s.flows.cancel_some(flow.flow_no, reason=reason, limit=10, now=driver.now)
    ):
        pass


def test_a_dead_callback_is_redriven_with_its_flow_and_never_counts_as_a_member(
    driver: StoreDriver, mail: Queue
) -> None:
    flow = flows.create(driver, a_member(mail, "a"), a_callback(mail, MemberRole.ON_FINISH))
    claim_and(driver, mail, Verb.COMPLETE)
    claim_and(driver, mail, Verb.BURY)  # on_finish
    ended = flows.now_so(driver, flow)
    assert flows.states(driver, flow) == {"a": "done", "on_finish": "dead"}

    driver.write(
        lambda s: s.flows.redrive_some(flow.flow_no, after_no=0, limit=EVERYTHING, now=driver.now)
    )

    assert flows.states(driver, flow) == {"a": "done", "on_finish": "released"}
    assert flows.now_so(driver, flow) == ended  # it has not begun anew
    claim_and(driver, mail, Verb.COMPLETE)
    assert flows.states(driver, flow)["on_finish"] == "done"
    assert driver.claim(mail) == []


def test_a_dead_member_of_a_cancelled_flow_runs_alone_when_it_is_redriven(
    driver: StoreDriver, mail: Queue
) -> None:
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "b", ("a",)),
        a_member(mail, "c", {"a": RunsOn.ENDED, "b": RunsOn.ENDED}),
        a_callback(mail, MemberRole.ON_FINISH),
    )
    claim_and(driver, mail, Verb.BURY)
    cancel(driver, flow)
    claim_and(driver, mail, Verb.COMPLETE)  # on_finish

    dead = flows.members(driver, flow)["a"].id
    driver.alter(dead, lambda m, q: transfer.redrive(m, q, now=driver.now))

    assert flows.now_so(driver, flow).outcome is None
    claim_and(driver, mail, Verb.COMPLETE)
    assert flows.states(driver, flow) == {
        "a": "done",
        "b": "cancelled",
        "c": "cancelled",
        "on_finish": "done",
    }
    assert flows.now_so(driver, flow).outcome is FlowOutcome.CANCELLED
    assert driver.claim(mail) == []


def test_a_flow_continues_after_its_dead_member_is_redriven(
    driver: StoreDriver, mail: Queue
) -> None:
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "b", ("a",)),
        a_member(mail, "c", ("b",)),
        a_callback(mail, MemberRole.ON_SUCCESS),
        a_callback(mail, MemberRole.ON_FAILURE),
    )
    claim_and(driver, mail, Verb.BURY)
    claim_and(driver, mail, Verb.COMPLETE)  # on_failure
    assert flows.states(driver, flow)["on_success"] == "skipped"

    dead = flows.members(driver, flow)["a"].id
    driver.alter(dead, lambda m, q: transfer.redrive(m, q, now=driver.now))

    assert flows.now_so(driver, flow).outcome is None
    assert flows.states(driver, flow)["c"] == "blocked"
    for _ in range(4):
        claim_and(driver, mail, Verb.COMPLETE)
    assert set(flows.states(driver, flow).values()) == {"done"}
    assert flows.now_so(driver, flow).outcome is FlowOutcome.DONE
    assert driver.claim(mail) == []  # no callback a second time


def test_what_an_operator_has_cancelled_does_not_come_back(
    driver: StoreDriver, mail: Queue
) -> None:
    flow = flows.create(
        driver, a_member(mail, "a"), a_member(mail, "b", ("a",)), a_member(mail, "c", ("a",))
    )
    ids = {name: m.id for name, m in flows.members(driver, flow).items()}
    driver.alter(ids["b"], lambda m, _: lifecycle.cancel(m))
    claim_and(driver, mail, Verb.BURY)

    driver.alter(ids["a"], lambda m, q: transfer.redrive(m, q, now=driver.now))

    assert flows.states(driver, flow) == {"a": "released", "b": "cancelled", "c": "blocked"}


def test_an_operator_ends_blocked_members(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "b", ("a",)),
        a_member(mail, "c", ("b",)),
        a_member(mail, "d", ("a",)),
    )
    ids = {name: m.id for name, m in flows.members(driver, flow).items()}

    with pytest.raises(WrongState):
        driver.alter(ids["c"], lambda m, _: lifecycle.reschedule(m, due_at=1, now=driver.now))
    driver.alter(ids["b"], lambda m, _: lifecycle.complete_by_hand(m))
    driver.alter(ids["d"], lambda m, _: lifecycle.cancel(m, reason="not today"))
    with pytest.raises(MessageNotFound):
        driver.alter(ids["b"], lambda m, _: lifecycle.cancel(m))

    assert flows.states(driver, flow) == {
        "a": "released",
        "b": "done",
        "c": "released",
        "d": "cancelled",
    }
    assert flows.members(driver, flow)["d"].reason == "not today"


def test_a_cancelled_flow_starts_nothing_any_more(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "b", ("a",)),
        a_callback(mail, MemberRole.ON_FINISH),
        a_callback(mail, MemberRole.ON_FAILURE),
    )
    [running] = driver.claim(mail)
    driver.write(lambda s: s.flows.cancel(flow.id, reason="wrong data", now=driver.now))
    while driver.write(
        lambda s: s.flows.cancel_some(flow.flow_no, reason="wrong data", limit=10, now=driver.now)
    ):
        pass

    assert driver.act(Verb.COMPLETE, running).code == "lease_lost"  # type: ignore[union-attr]
    assert flows.states(driver, flow) == {
        "a": "cancelled",
        "b": "cancelled",
        "on_finish": "released",
        "on_failure": "skipped",
    }
    ended = flows.now_so(driver, flow)
    assert ended.outcome is FlowOutcome.CANCELLED
    with pytest.raises(WrongState):
        flows.add(driver, flow, a_member(mail, "c"))


def test_cancelling_ends_members_whose_messages_were_lost(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(driver, a_member(mail, "a"), a_member(mail, "b", ("a",)))
    lost = flows.members(driver, flow)["a"].message_no

    def damage(session: Any) -> None:
        session.db.run("messages.remove", {"message_nos": f"[{lost}]"})

    driver.write(damage)
    lost_ones = driver.read(lambda s: checks.lost_members(s))  # type: ignore[arg-type]
    assert lost_ones == [(flow.id, "f", 1)]
    driver.queues.clear()  # its counters are wrong, too

    driver.write(lambda s: s.flows.cancel(flow.id, reason=None, now=driver.now))
    while driver.write(
        lambda s: s.flows.cancel_some(flow.flow_no, reason=None, limit=10, now=driver.now)
    ):
        pass

    assert flows.now_so(driver, flow).outcome is FlowOutcome.CANCELLED


def test_a_dead_letter_counts_as_dead_until_it_returns(driver: StoreDriver) -> None:
    dead = driver.queue("dead")
    mail = driver.queue(max_attempts=1, dead_letter_queue="dead")
    flow = flows.create(driver, a_member(mail, "a"), a_member(mail, "b", ("a",)))
    claim_and(driver, mail, Verb.BURY)
    assert flows.states(driver, flow) == {"a": "dead", "b": "cancelled"}

    driver.write(lambda s: s.messages.redrive(dead.queue_no, to=None, limit=10, now=driver.now))

    assert flows.states(driver, flow) == {"a": "released", "b": "blocked"}


def test_a_dead_letter_that_is_handled_does_not_change_the_flow(driver: StoreDriver) -> None:
    dead = driver.queue("dead")
    mail = driver.queue(max_attempts=1, dead_letter_queue="dead")
    flow = flows.create(driver, a_member(mail, "a"), a_member(mail, "b", ("a",)))
    claim_and(driver, mail, Verb.BURY)

    claim_and(driver, dead, Verb.COMPLETE)

    assert flows.states(driver, flow) == {"a": "cancelled", "b": "cancelled"}
    assert flows.now_so(driver, flow).outcome is FlowOutcome.FAILED


def redrive(driver: StoreDriver, flow: Flow, name: str) -> None:
    dead = flows.members(driver, flow)[name].id
    driver.alter(dead, lambda m, q: transfer.redrive(m, q, now=driver.now))


def test_a_redriven_member_leaves_nothing_cancelled_that_is_only_not_needed(
    driver: StoreDriver, mail: Queue
) -> None:
    """`both` needs a member that is skipped: once the other one is done, nothing has failed."""
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "skipped", {"a": RunsOn.FAILED}),
        a_member(mail, "b"),
        a_member(mail, "both", ("skipped", "b")),
        a_member(mail, "last", ("both",)),
    )
    [first, second] = driver.claim(mail, 2)
    driver.act(Verb.BURY, second)
    assert flows.states(driver, flow)["last"] == "cancelled"
    driver.complete(first)

    redrive(driver, flow, "b")
    assert flows.states(driver, flow)["both"] == "skipped"
    claim_and(driver, mail, Verb.COMPLETE)

    assert flows.states(driver, flow) == {
        "a": "done",
        "skipped": "skipped",
        "b": "done",
        "both": "skipped",
        "last": "skipped",
    }
    assert flows.now_so(driver, flow).outcome is FlowOutcome.DONE


def test_members_that_could_not_be_sent_wait_again_for_what_runs_again(
    driver: StoreDriver,
) -> None:
    mail = driver.queue(max_body_bytes=100, max_attempts=1)
    after_both = {"a": RunsOn.DONE, "broken": RunsOn.ENDED}
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "broken"),
        a_member(mail, "b", after_both, inputs={"a": "a"}, body="{}"),
        a_member(mail, "c", {"a": RunsOn.DONE, "b": RunsOn.ENDED}, inputs={"a": "a"}, body="{}"),
    )
    [first, second] = driver.claim(mail, 2)
    driver.act(Verb.BURY, second)
    driver.act(Verb.COMPLETE, first, result=f'"{"x" * 100}"')
    assert flows.states(driver, flow)["b"] == flows.states(driver, flow)["c"] == "cancelled"

    def retry() -> int:
        return driver.write(lambda s: s.flows.retry(flow.flow_no, message_nos=None, now=driver.now))

    assert retry() == 0  # they are too large still
    driver.tune(mail, max_body_bytes=1_000)
    redrive(driver, flow, "broken")
    assert retry() == 2

    assert flows.states(driver, flow) == {
        "a": "done",
        "broken": "released",
        "b": "blocked",
        "c": "blocked",
    }
    for _ in range(3):
        claim_and(driver, mail, Verb.COMPLETE)
    assert flows.now_so(driver, flow).outcome is FlowOutcome.DONE
