"""Limits and fair share with several nodes that send, claim and change the limits at once."""

import threading
from contextlib import suppress

import psycopg
import pytest

from penstock.domain.errors import MessageNotFound, WrongState
from penstock.domain.limits import DAY, MINUTE, SECOND
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Queue
from penstock.domain.queue.rate import Rate
from penstock.ports.store import Session
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.postgres.helpers import assert_lock_is_waited_for, at_once, until

TURNS = 40
LINE = "SELECT pg_advisory_xact_lock(1885697143, {})"
ALL_MESSAGES = "SELECT id FROM message FOR UPDATE NOWAIT"


def claim_all(driver: StoreDriver, queue: Queue, count: int = 10) -> list[Message]:
    return [m for _ in range(count) for m in driver.claim(queue, 3)]


def test_several_nodes_lease_no_more_than_the_queue_allows(drivers):
    mail = drivers[0].queue(max_leased=7, lease_ms=DAY)
    drivers[0].send_many(mail, 100)

    claimed = at_once(*[lambda d=d: claim_all(d, mail) for d in drivers * 2])

    assert sum(map(len, claimed)) == 7


def test_several_nodes_keep_to_the_rate_of_a_queue(drivers):
    mail = drivers[0].queue(rate=Rate(1, MINUTE, 7), lease_ms=DAY)
    drivers[0].send_many(mail, 100)

    claimed = at_once(*[lambda d=d: claim_all(d, mail) for d in drivers * 2])

    assert sum(map(len, claimed)) == 7


def test_several_nodes_keep_to_the_limit_of_a_group(drivers):
    mail = drivers[0].queue(max_leased_per_group=3, lease_ms=DAY)

    def send_and_claim(driver: StoreDriver) -> list[Message]:
        driver.send_many(mail, 20, group="a")
        return claim_all(driver, mail)

    claimed = at_once(*[lambda d=d: send_and_claim(d) for d in drivers * 2])

    assert sum(map(len, claimed)) == 3
    check_counters(drivers[0])


def test_a_node_notices_a_new_limit(drivers):
    first, second = drivers
    mail = first.queue(lease_ms=DAY)
    for driver in drivers:
        driver.send_many(mail, 2, group="a")
        [held] = driver.claim(mail)

    first.tune(mail, max_leased_per_group=3, is_fair=True)

    second.complete(held)
    second.send_many(mail, 5, group="a")
    assert len(second.claim(mail, 9)) == 2
    second.tune(mail, max_leased_per_group=None, is_fair=False)
    first.send_many(mail, 5, group="a")
    assert len(first.claim(mail, 99)) == 10
    first.keeps_history = False
    check_counters(first)


def work_on(driver: StoreDriver, queue: Queue, seed: int) -> None:
    """Send, claim and end in all ways; the check afterwards would show exceeded limits."""
    for n in range(TURNS):
        group = "abc"[(seed + n) % 3]
        sends = [driver.submit_send(queue, group=g, delay_ms=n % 2) for g in (group, "a", None)]
        held = driver.claim(queue, 1 + n % 4)
        verbs = (Verb.COMPLETE, Verb.FAIL, Verb.RELEASE, Verb.BURY, Verb.COMPLETE)
        acts = [driver.submit_act(verbs[(seed + n + i) % 5], m) for i, m in enumerate(held)]
        for ticket in [*sends, *acts]:
            ticket.result(WAIT_S)


def redrive_and_sweep(driver: StoreDriver, queue: Queue, letters: Queue) -> None:
    now = driver.now + 5

    def sweep(session: Session) -> None:
        session.messages.redrive(letters.queue_no, to=None, limit=3, now=now)

    def return_due(session: Session) -> None:
        session.maintenance.return_due(queue.queue_no, now=now, limit=9)

    for _ in range(TURNS):
        driver.write(sweep)
        driver.write(return_due)
        for message in driver.browse(queue, State.READY, limit=1):
            with suppress(MessageNotFound, WrongState):  # another thread was faster
                driver.alter(message.id, lambda m, _: lifecycle.cancel(m))


def drain(driver: StoreDriver, queues: list[Queue]) -> None:
    """Nothing is stuck: all that is left can be claimed and completed in time."""
    driver.keeps_history = False
    check_counters(driver)
    driver.clock.advance(days=2)
    for _ in range(2_000):
        driver.clock.advance(seconds=1)
        for queue in queues:
            for m in driver.claim(queue, 100):
                driver.complete(m)
        if not any(driver.counts(queue).live for queue in queues):
            break
    assert [driver.counts(queue).live for queue in queues] == [0] * len(queues)
    check_counters(driver)


def change_limits(driver: StoreDriver, queue: Queue) -> None:
    for n in range(10):
        driver.tune(queue, max_leased_per_group=(1, 2, None)[n % 3], is_fair=n % 2 == 0)


@pytest.mark.parametrize("limits", [{"max_leased_per_group": 2}, {"is_fair": True}], ids=str)
def test_everything_at_once_causes_no_deadlock(drivers, backed_off, limits):
    letters = drivers[0].queue("letters", lease_ms=DAY, rate_per_group=Rate(50, SECOND, 9))
    mail = drivers[0].queue(
        lease_ms=DAY, max_leased=50, max_attempts=2, dead_letter_queue="letters", **limits
    )

    at_once(
        *[lambda d=d, i=i: work_on(d, mail, i) for i, d in enumerate(drivers * 2)],
        lambda: redrive_and_sweep(drivers[0], mail, letters),
        lambda: work_on(drivers[1], letters, 1),
    )

    assert backed_off == []
    drain(drivers[0], [mail, letters])


def test_limits_can_be_changed_under_load(drivers):
    mail = drivers[0].queue(lease_ms=DAY)

    at_once(
        *[lambda d=d, i=i: work_on(d, mail, i) for i, d in enumerate(drivers)],
        *[lambda d=d: change_limits(d, mail) for d in drivers],
    )

    drain(drivers[0], [mail])


@pytest.mark.parametrize(
    "work", ["send", "claim", "fail", "complete", "return_due", "purge", "one"]
)
def test_a_transaction_that_waits_for_a_queue_row_has_locked_no_message(driver, postgres_url, work):
    mail = driver.queue(lease_ms=MINUTE, max_leased_per_group=1)
    ids = driver.send_many(mail, 3, group="a")
    [held] = driver.claim(mail)
    no, now = mail.queue_no, driver.now + 2 * MINUTE
    do = {
        "send": lambda: driver.send(mail, group="a"),
        "claim": lambda: driver.claim(mail),
        "fail": lambda: driver.act(Verb.FAIL, held),
        "complete": lambda: driver.complete(held),
        "return_due": lambda: driver.write(
            lambda s: s.maintenance.return_due(no, now=now, limit=9)
        ),
        "purge": lambda: driver.write(lambda s: s.messages.purge(no, limit=9, now=now)),
        "one": lambda: driver.alter(ids[2], lambda m, _: lifecycle.cancel(m)),
    }

    with psycopg.connect(postgres_url) as other:
        other.execute(LINE.format(no).encode())
        worker = threading.Thread(target=do[work], daemon=True)
        worker.start()
        until(lambda: assert_lock_is_waited_for(postgres_url), AssertionError)
        assert other.execute(ALL_MESSAGES).fetchall()
        other.rollback()

    worker.join(WAIT_S)
    assert not worker.is_alive()
    check_counters(driver)
