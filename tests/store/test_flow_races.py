"""Several connections end members of the same flows at the same time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

from penstock.domain.errors import PenstockError
from penstock.domain.flow.member import MemberRole, RunsOn
from penstock.domain.flow.plan import FlowKey
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Store
from tests.clocks import ManualClock
from tests.store import flows
from tests.store.backends import Open, every_backend
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.flows import a_callback, a_member

__all__ = ["every_backend"]  # a fixture

FLOWS = 30


@pytest.fixture
def drivers(open_store: Open, store: Store, clock: ManualClock) -> Iterator[list[StoreDriver]]:
    """Two nodes: on SQLite two stores on one file."""
    with closing(open_store()) as other:
        yield [StoreDriver(store, clock), StoreDriver(other, clock)]


def at_once(*does: Callable[[], None]) -> None:
    errors: list[BaseException] = []
    begin = threading.Barrier(len(does))

    def run(do: Callable[[], None]) -> None:
        begin.wait(WAIT_S)
        try:
            do()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(do,)) for do in does]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT_S)
    assert errors == []


def test_two_nodes_end_the_parents_of_one_member_at_the_same_time(
    drivers: list[StoreDriver],
) -> None:
    left, right = (drivers[0].queue(name) for name in ("left", "right"))
    orders = drivers[0].queue("orders", ordering="group")  # all children enter one group
    made = [
        flows.create(
            drivers[0],
            a_member(left, "a"),
            a_member(right, "b"),
            a_member(orders, "c", ("a", "b"), group="g"),
        )
        for _ in range(FLOWS)
    ]

    def complete_all(driver: StoreDriver, queue: Queue) -> Callable[[], None]:
        held = driver.claim(queue, FLOWS)

        def complete() -> None:
            for message in held:
                driver.complete(message)

        return complete

    at_once(complete_all(drivers[0], left), complete_all(drivers[1], right))

    for flow in made:
        assert flows.states(drivers[0], flow) == {"a": "done", "b": "done", "c": "released"}
    assert drivers[0].counts(orders).sent_total == FLOWS
    check_counters(drivers[0])


def test_two_nodes_create_a_flow_with_the_same_key_at_the_same_time(
    drivers: list[StoreDriver],
) -> None:
    mail = drivers[0].queue()
    made: list[tuple[int, str]] = []

    def create_all(driver: StoreDriver) -> Callable[[], None]:
        def create() -> None:
            for number in range(FLOWS):
                key = FlowKey(f"{number}")
                flow = flows.create(driver, a_member(mail, "a"), key=key)
                made.append((number, flow.id))

        return create

    at_once(*map(create_all, drivers * 2))

    assert len(made) == 4 * FLOWS
    assert len(set(made)) == FLOWS
    assert drivers[0].counts(mail).sent_total == FLOWS


def test_random_acts_on_several_nodes_neither_strand_nor_double_a_member(
    drivers: list[StoreDriver],
) -> None:
    one = drivers[0]
    plain = one.queue(max_attempts=1)
    orders = one.queue("orders", ordering="group", max_attempts=1)
    limited = one.queue("limited", max_leased=3, max_attempts=1)
    queues = (plain, orders, limited)
    ends = (RunsOn.DONE, RunsOn.ENDED, RunsOn.FAILED)
    dice = random.Random(7)
    made = []
    for _ in range(8):
        members = []
        for i in range(8):
            parents = {f"m{p}": dice.choice(ends) for p in range(i) if dice.random() < 0.4}
            queue = dice.choice(queues)
            group = dice.choice(("a", "b")) if queue is orders else None
            members.append(a_member(queue, f"m{i}", parents, group=group))
        made.append(flows.create(one, *members, a_callback(plain, MemberRole.ON_FINISH)))
    ids = [m.id for flow in made for m in flows.members(one, flow).values()]

    def work(driver: StoreDriver, seed: int) -> Callable[[], None]:
        dice = random.Random(seed)

        def act() -> None:
            for _ in range(40):
                for message in driver.claim(dice.choice(queues), 2):
                    verb = dice.choice((Verb.COMPLETE, Verb.COMPLETE, Verb.BURY, Verb.FAIL))
                    driver.act(verb, message)
                intervene(driver, dice.choice(ids), dice)

        return act

    at_once(*(work(driver, seed) for seed, driver in enumerate(drivers * 2)))

    for _ in range(len(ids)):  # every message that is left gets done
        held = [m for queue in queues for m in one.claim(queue, 100)]
        if not held:
            break
        for message in held:
            one.complete(message)
    for flow in made:
        ended = flows.now_so(one, flow)
        assert ended.outcome is not None, flows.states(one, flow)
        assert flows.states(one, flow)["on_finish"] != "blocked"
    one.sent_ids = ids
    sent = [e.id for e in one.endings(outcome="done")]
    assert len(sent) == len(set(sent)), "done twice"
    check_counters(one)


def intervene(driver: StoreDriver, message_id: str, dice: random.Random) -> None:
    def redrive(message: Message, queue: Queue) -> Message:
        return transfer.redrive(message, queue, now=driver.now)

    def cancel(message: Message, queue: Queue) -> Message:
        return lifecycle.cancel(message, is_running_ok=True)

    with suppress(PenstockError):  # it is in another state
        driver.alter(message_id, dice.choice((redrive, redrive, cancel)))
