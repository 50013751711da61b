"""Members of flows enter their queues in the transaction that ends the last of their parents."""

from __future__ import annotations

import pytest

from penstock.domain.errors import (
    FlowNotFound,
    InvalidRequest,
    QueueFull,
    WrongState,
)
from penstock.domain.flow.flow import FlowOutcome
from penstock.domain.flow.member import MemberRole, RunsOn
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from tests.store import flows
from tests.store.driver import StoreDriver
from tests.store.flows import a_callback, a_member


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue(max_attempts=1)


def claim_and(driver: StoreDriver, queue: Queue, verb: Verb, **fields: object) -> None:
    [message] = driver.claim(queue)
    driver.act(verb, message, **fields)


def test_a_member_is_sent_when_its_last_parent_is_done(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver, a_member(mail, "a"), a_member(mail, "b"), a_member(mail, "c", ("a", "b"))
    )

    assert driver.counts(mail).ready == 2  # the third is not in its queue
    claim_and(driver, mail, Verb.COMPLETE)
    assert driver.counts(mail).ready == 1
    claim_and(driver, mail, Verb.COMPLETE)

    assert flows.states(driver, flow) == {"a": "done", "b": "done", "c": "released"}
    [third] = driver.claim(mail)
    assert third.sent_at == driver.now
    driver.complete(third)
    ended = flows.now_so(driver, flow)
    assert (ended.outcome, ended.done, ended.ended_at) == (FlowOutcome.DONE, 3, driver.now)


def test_parents_that_end_in_one_batch_release_a_member_once(
    driver: StoreDriver, mail: Queue
) -> None:
    flows.create(driver, a_member(mail, "a"), a_member(mail, "b"), a_member(mail, "c", ("a", "b")))
    held = driver.claim(mail, 2)

    with driver.together():
        tickets = [driver.submit_act(Verb.COMPLETE, m) for m in held]
    for ticket in tickets:
        ticket.result(30)

    assert len(driver.claim(mail, 10)) == 1


def test_what_a_failed_parent_does_is_said_by_the_edge(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "needs it", ("a",)),
        a_member(mail, "needs that", ("needs it",)),
        a_member(mail, "continues", {"a": RunsOn.ENDED}),
        a_member(mail, "handles it", {"a": RunsOn.FAILED}),
        a_member(mail, "handles nothing", {"continues": RunsOn.FAILED}),
    )
    claim_and(driver, mail, Verb.BURY)

    assert flows.states(driver, flow) == {
        "a": "dead",
        "needs it": "cancelled",
        "needs that": "cancelled",
        "continues": "released",
        "handles it": "released",
        "handles nothing": "blocked",
    }
    for _ in range(2):
        claim_and(driver, mail, Verb.COMPLETE)
    assert flows.states(driver, flow)["handles nothing"] == "skipped"
    ended = flows.now_so(driver, flow)
    assert (ended.outcome, ended.failed, ended.skipped) == (FlowOutcome.FAILED, 3, 1)


def test_a_name_is_given_once_in_a_flow(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(driver, a_member(mail, "a"))

    with pytest.raises(InvalidRequest, match="a member 'a' already"):
        flows.add(driver, flow, a_member(mail, "a"))


def test_results_become_inputs(driver: StoreDriver, mail: Queue) -> None:
    flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "b"),
        a_member(mail, "c", inputs={"one": "a", "all": ("a", "b")}, body='{"x": 9.990}'),
    )
    for result in ('{"n": 1.10}', None):
        claim_and(driver, mail, Verb.COMPLETE, result=result)

    [third] = driver.claim(mail)
    content = driver.read(lambda s: s.messages.content(third))
    assert content is not None
    assert content.body == '{"x":9.990,"one":{"n": 1.10},"all":[{"n": 1.10},null]}'
    assert third.size == len(content.body)


def test_inputs_that_are_too_large_cancel_the_member(driver: StoreDriver) -> None:
    mail = driver.queue(max_body_bytes=100)
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "b", inputs={"a": "a"}, body="{}"),
        a_member(mail, "c", ("b",)),
    )
    claim_and(driver, mail, Verb.COMPLETE, result=f'"{"x" * 100}"')

    assert flows.members(driver, flow)["b"].reason == "inputs_too_large"
    assert flows.states(driver, flow)["c"] == "cancelled"

    driver.tune(mail, max_body_bytes=1_000)
    driver.write(lambda s: s.flows.retry(flow.flow_no, message_nos=None, now=driver.now))
    assert flows.states(driver, flow) == {"a": "done", "b": "released", "c": "blocked"}
    assert flows.now_so(driver, flow).outcome is None


def test_members_added_later_get_results_of_members_that_are_done(
    driver: StoreDriver, mail: Queue
) -> None:
    flow = flows.create(driver, a_member(mail, "a"), is_open=True)
    claim_and(driver, mail, Verb.COMPLETE, result="17")

    flows.add(driver, flow, a_member(mail, "b", inputs={"n": "a"}, body="{}"))

    [second] = driver.claim(mail)
    content = driver.read(lambda s: s.messages.content(second))
    assert content is not None
    assert content.body == '{"n":17}'


def test_a_queue_that_is_removed_cancels_what_would_enter_it(driver: StoreDriver) -> None:
    mail, other = driver.queue(), driver.queue("other")
    flow = flows.create(driver, a_member(mail, "a"), a_member(other, "b", ("a",)))
    driver.write(lambda s: s.queues.remove(other.queue_no, now=driver.now))
    driver.queues.remove(other)

    claim_and(driver, mail, Verb.COMPLETE)

    assert flows.members(driver, flow)["b"].reason == "queue_removed"
    assert flows.now_so(driver, flow).outcome is FlowOutcome.FAILED


def test_delay_and_expiry_count_from_the_release(driver: StoreDriver, mail: Queue) -> None:
    flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "b", ("a",), delay_ms=MINUTE, expires_in_ms=2 * MINUTE),
    )
    driver.clock.advance(minutes=10)
    claim_and(driver, mail, Verb.COMPLETE)

    [waiting] = driver.browse(mail, State.WAITING)
    assert waiting.due_at == driver.now + MINUTE
    assert waiting.expires_at == driver.now + 2 * MINUTE


def test_an_ordered_group_does_not_wait_for_a_blocked_member(driver: StoreDriver) -> None:
    orders = driver.queue("orders", ordering="group")
    flows.create(driver, a_member(orders, "b", ("a",), group="g"), a_member(orders, "a", group="g"))

    claim_and(driver, orders, Verb.COMPLETE)
    claim_and(driver, orders, Verb.COMPLETE)


def test_limits_and_fair_shares_apply_to_released_members(driver: StoreDriver) -> None:
    mail = driver.queue()
    limited = driver.queue("limited", max_leased_per_group=1, is_fair=True)
    flows.create(
        driver,
        a_member(mail, "a"),
        *(a_member(limited, f"b{i}", ("a",), group="g") for i in range(3)),
    )
    claim_and(driver, mail, Verb.COMPLETE)

    assert len(driver.claim(limited, 10)) == 1


def test_only_members_that_are_sent_at_once_need_room(driver: StoreDriver) -> None:
    mail = driver.queue(max_messages=1)
    with pytest.raises(QueueFull):
        flows.create(driver, a_member(mail, "a"), a_member(mail, "b"))
    assert driver.counts(mail).sent_total == 0

    flows.create(driver, a_member(mail, "a"), a_member(mail, "b", ("a",)))
    driver.send(driver.queue("other"))
    claim_and(driver, mail, Verb.COMPLETE)
    assert driver.counts(mail).ready == 1


def test_an_open_flow_ends_when_it_is_closed(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(driver, a_callback(mail, MemberRole.ON_SUCCESS), is_open=True)
    flows.add(driver, flow, a_member(mail, "a"))
    claim_and(driver, mail, Verb.COMPLETE)
    assert flows.now_so(driver, flow).outcome is None

    driver.write(lambda s: s.flows.close(flow.id, now=driver.now))

    assert flows.now_so(driver, flow).outcome is FlowOutcome.DONE
    assert len(driver.claim(mail, 10)) == 1
    with pytest.raises(WrongState):
        flows.add(driver, flow, a_member(mail, "b"))


def test_a_member_that_does_not_exist_is_refused_with_the_whole_flow(
    driver: StoreDriver, mail: Queue
) -> None:
    with pytest.raises(InvalidRequest, match="no member 'x'"):
        flows.create(driver, a_member(mail, "a"), a_member(mail, "b", ("x",)))

    assert driver.counts(mail).sent_total == 0
    with pytest.raises(FlowNotFound):
        driver.read(lambda s: s.flows.find("01a1f20b-c491-7ddc-bb10-8b730d143b82"))


def test_a_batch_of_10000_calls_back_once(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver,
        *(a_member(mail, f"m{i}") for i in range(10_000)),
        *(a_callback(mail, role) for role in list(MemberRole)[1:]),
    )
    done = 0
    while held := driver.claim(mail, 1_000):
        with driver.together():
            tickets = [driver.submit_act(Verb.COMPLETE, m) for m in held]
        for ticket in tickets:
            ticket.result(30)
        done += len(held)

    assert done == 10_002  # on_success and on_finish
    ended = flows.now_so(driver, flow)
    assert (ended.outcome, ended.done, ended.total) == (FlowOutcome.DONE, 10_000, 10_000)
    assert flows.states(driver, flow)["on_failure"] == "skipped"


def test_a_chain_of_1000_is_cancelled_as_a_whole(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver,
        a_member(mail, "m0"),
        *(a_member(mail, f"m{i}", (f"m{i - 1}",)) for i in range(1, 1_000)),
    )
    claim_and(driver, mail, Verb.BURY)

    assert flows.now_so(driver, flow).failed == 1_000


def test_ended_flows_are_forgotten_unless_a_member_can_be_redriven(
    driver: StoreDriver, mail: Queue
) -> None:
    done = flows.create(driver, a_member(mail, "a"), a_member(mail, "b", ("a",)))
    for _ in range(2):
        claim_and(driver, mail, Verb.COMPLETE)
    failed = flows.create(driver, a_member(mail, "a"))
    claim_and(driver, mail, Verb.BURY)
    driver.clock.advance(minutes=1)

    def forget() -> None:
        before_at = driver.now
        while driver.write(lambda s: s.flows.forget(before_at=before_at, limit=1)):
            pass

    forget()
    with pytest.raises(FlowNotFound):
        flows.now_so(driver, done)
    assert flows.states(driver, failed) == {"a": "dead"}

    driver.alter(flows.members(driver, failed)["a"].id, lambda m, _: lifecycle.cancel(m))
    forget()
    with pytest.raises(FlowNotFound):
        flows.now_so(driver, failed)


def test_a_flow_outlives_the_days_of_its_members(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver, a_member(mail, "a"), a_member(mail, "b", inputs={"n": "a"}, body="{}")
    )
    driver.keeps_history = False
    day = driver.now // DAY
    driver.clock.advance(minutes=60 * 24 * 3)
    driver.write(lambda s: s.maintenance.drop_day(day, now=driver.now))
    claim_and(driver, mail, Verb.COMPLETE, result="1")
    driver.write(lambda s: s.maintenance.drop_day(day + 3, now=driver.now + DAY))

    [second] = driver.claim(mail)
    content = driver.read(lambda s: s.messages.content(second))
    assert content is not None
    assert content.body == '{"n":1}'
    assert flows.states(driver, flow) == {"a": "done", "b": "released"}
