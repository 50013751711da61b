"""What operators see of flows: which there are, and what became of their members."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.flow.flow import Flow
from penstock.domain.flow.folding import FlowEdge
from penstock.domain.flow.member import MemberRun, RunsOn
from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.ports.flows import FlowFilter
from tests.factories import an_id
from tests.store import flows
from tests.store.driver import StoreDriver
from tests.store.flows import a_member


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue(max_attempts=1)


def runs(driver: StoreDriver, flow: Flow) -> dict[str, MemberRun]:
    found = flows.members(driver, flow)
    by_no = driver.read(lambda s: s.flows.runs(list(found.values())))
    return {name: by_no[m.message_no] for name, m in found.items() if m.message_no in by_no}


def page(driver: StoreDriver, **wanted: Any) -> list[str]:
    return [flow.id for flow in driver.read(lambda s: s.flows.page(FlowFilter(**wanted)))]


def test_a_member_has_the_times_of_its_message(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver,
        a_member(mail, "a"),
        a_member(mail, "late", delay_ms=MINUTE),
        a_member(mail, "b", ("a",)),
    )
    sent_at = driver.now
    before = runs(driver, flow)
    assert set(before) == {"a", "late"}
    assert (before["a"].message_state, before["a"].sent_at) == (State.READY, sent_at)
    assert before["a"].first_leased_at is None
    assert before["late"].message_state is State.WAITING
    assert before["late"].due_at == sent_at + MINUTE

    driver.clock.advance(seconds=2)
    [message] = driver.claim(mail, limit=1)
    running = runs(driver, flow)["a"]
    assert (running.message_state, running.leased_at) == (State.LEASED, sent_at + 2_000)
    assert running.attempts == 1

    driver.clock.advance(seconds=3)
    driver.complete(message)
    ended = runs(driver, flow)
    assert ended["a"].message_state is None
    assert (ended["a"].sent_at, ended["a"].leased_at) == (sent_at, sent_at + 2_000)
    assert ended["b"].sent_at == sent_at + 5_000


def test_a_dead_member_has_its_times_even_when_its_message_is_a_dead_letter(
    driver: StoreDriver,
) -> None:
    letters = driver.queue("letters")
    queue = driver.queue(max_attempts=1, dead_letter_queue=letters.name)
    flow = flows.create(driver, a_member(queue, "a"))
    sent_at = driver.now
    driver.clock.advance(seconds=1)
    [message] = driver.claim(queue)

    driver.act(Verb.BURY, message)

    run = runs(driver, flow)["a"]
    assert (run.message_state, run.sent_at, run.leased_at) == (None, sent_at, sent_at + 1_000)


def test_a_member_that_was_redriven_has_the_times_of_its_last_run(
    driver: StoreDriver, mail: Queue
) -> None:
    flow = flows.create(driver, a_member(mail, "a"))
    [message] = driver.claim(mail)
    driver.act(Verb.BURY, message)
    driver.clock.advance(days=1)
    driver.write(lambda s: s.flows.redrive_some(flow.flow_no, after_no=0, limit=10, now=driver.now))
    assert runs(driver, flow)["a"].message_state is State.READY

    driver.clock.advance(seconds=4)
    [message] = driver.claim(mail)
    driver.complete(message)

    run = runs(driver, flow)["a"]
    assert (run.message_state, run.leased_at) == (None, driver.now)


def test_the_edges_to_members_are_read_by_number(driver: StoreDriver, mail: Queue) -> None:
    flow = flows.create(
        driver, a_member(mail, "a"), a_member(mail, "b", {"a": RunsOn.ENDED}), a_member(mail, "c")
    )
    found = flows.members(driver, flow)

    edges = driver.read(lambda s: s.flows.edges(list(found.values())))

    a, b = found["a"].message_no, found["b"].message_no
    assert edges == [FlowEdge(b, a, RunsOn.ENDED)]
    again = driver.read(lambda s: s.flows.members_of([b, a]))
    assert [m.name for m in again] == ["a", "b"]


def test_failing_flows_are_listed_until_they_are_repaired_or_cancelled(
    driver: StoreDriver, mail: Queue
) -> None:
    running = flows.create(driver, a_member(mail, "a"), a_member(mail, "b"))
    ended = flows.create(driver, a_member(mail, "a"))
    flows.create(driver, a_member(driver.queue("other"), "a"))
    assert page(driver, is_failing=True) == []

    first, _, third = driver.claim(mail, limit=3)
    driver.act(Verb.BURY, first)
    driver.act(Verb.BURY, third)
    assert page(driver, is_failing=True) == [ended.id, running.id]
    assert page(driver, is_failing=True, limit=1) == [ended.id]

    driver.write(lambda s: s.flows.cancel(running.id, reason=None, now=driver.now))
    driver.write(
        lambda s: s.flows.redrive_some(ended.flow_no, after_no=0, limit=10, now=driver.now)
    )
    assert page(driver, is_failing=True) == []


def test_the_flows_that_the_handler_of_a_message_created_are_found(
    driver: StoreDriver, mail: Queue
) -> None:
    parent = flows.create(driver, a_member(mail, "a"), a_member(mail, "b"))
    a, b = flows.members(driver, parent).values()
    inner = flows.create(driver, a_member(mail, "x"), created_by=a.id)
    other = flows.create(driver, a_member(mail, "x"), created_by=an_id())

    created = driver.read(lambda s: s.flows.created_by([a, b]))

    assert created == {a.id: [inner.id]}
    assert flows.now_so(driver, inner).created_by == a.id
    assert flows.now_so(driver, parent).created_by is None
    assert page(driver, created_by=a.id) == [inner.id]
    assert other.id in page(driver)
