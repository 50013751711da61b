"""The lock order: a transaction that waits for a lock holds none that comes later in the order.

Another transaction holds the lock that the tested one waits for, and then takes all later locks
without waiting: that fails if the tested one holds any of them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.outbound.dice import SystemDice
from penstock.services.bulk.moves import MoveService
from penstock.services.directory import Directory
from penstock.services.queues import QueueService
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.postgres.helpers import assert_lock_is_waited_for, at_once, slot_of, until

NO_QUEUES = "LOCK TABLE queue IN ACCESS EXCLUSIVE MODE"
SLOT = "SELECT pg_advisory_xact_lock(1885697140, {})"
FREE_SLOT = "SELECT pg_try_advisory_xact_lock(1885697140, {})"
ALL_MESSAGES = "SELECT id FROM message FOR UPDATE NOWAIT"
ALL_KEYS = "SELECT 1 FROM dedup FOR UPDATE NOWAIT"
ONE_MESSAGE = "SELECT 1 FROM message WHERE id = '{}' FOR UPDATE"


class Scene:
    """A queue ordered by group, its dead-letter queue, and a message in every state."""

    def __init__(self, driver: StoreDriver) -> None:
        self.driver = driver
        self.letters = driver.queue("letters", ordering="group")
        self.orders = driver.queue(
            "orders", ordering="group", lease_ms=MINUTE, dead_letter_queue="letters"
        )
        self.plain = driver.queue("plain", lease_ms=MINUTE)
        self.dead = driver.send(self.orders, group="a")
        driver.alter(self.dead, lambda m, _: lifecycle.bury(m))
        driver.send(self.orders, group="a", dedup_key="x", timeout_ms=MINUTE)
        driver.send(self.plain)
        [self.held] = driver.claim(self.orders)
        [self.held_plainly] = driver.claim(self.plain)
        self.next = driver.send(self.orders, group="a")
        self.moves = MoveService(driver.store, driver.clock, SystemDice())
        self.task = self.moves.start("letters").result(WAIT_S)

    def send(self) -> None:
        self.driver.send(self.orders, group="a")

    def complete(self) -> None:
        self.driver.complete(self.held)

    def complete_plainly(self) -> None:
        self.driver.complete(self.held_plainly)

    def fail(self) -> None:
        self.driver.act(Verb.FAIL, self.held)

    def fail_plainly(self) -> None:
        self.driver.act(Verb.FAIL, self.held_plainly)

    def bury(self) -> None:
        self.driver.act(Verb.BURY, self.held)

    def extend_too_late(self) -> None:
        self.driver.clock.advance(minutes=2)
        self.driver.act(Verb.EXTEND, self.held)

    def claim(self) -> None:
        self.driver.clock.advance(minutes=2)
        self.driver.claim(self.orders)

    def return_due(self) -> None:
        now = self.driver.now + 2 * MINUTE
        self.write(lambda s: s.maintenance.return_due(self.orders.queue_no, now=now, limit=10))

    def expire(self) -> None:
        now = self.driver.now + 1_000 * DAY
        self.write(lambda s: s.maintenance.expire(self.orders.queue_no, now=now, limit=10))

    def purge(self) -> None:
        driver = self.driver
        queues = QueueService(driver.store, driver.clock, Directory(driver.store, driver.clock))
        queues.purge_some("orders").result(WAIT_S)

    def redrive(self) -> None:
        no, now = self.letters.queue_no, self.driver.now
        self.write(lambda s: s.messages.redrive(no, to=None, limit=10, now=now))

    def move(self) -> None:
        self.moves.step(self.task.task_id, now=self.driver.now).result(WAIT_S)

    def cancel_by_hand(self) -> None:
        self.driver.alter(self.next, lambda m, _: lifecycle.cancel(m))

    def bury_by_hand(self) -> None:
        self.driver.alter(self.next, lambda m, _: lifecycle.bury(m))

    def write(self, what: Callable) -> None:
        self.driver.write(what)


NEVER_WAIT = ("claim", "return_due", "expire")
WAIT_FOR_GROUPS = (
    "send", "complete", "fail", "bury", "extend_too_late", "purge", "redrive", "move",
    "cancel_by_hand", "bury_by_hand",
)  # fmt: skip
ENTER_LETTERS = ("fail", "bury", "extend_too_late", "redrive", "move", "bury_by_hand")


@pytest.fixture
def scene(driver: StoreDriver) -> Scene:
    return Scene(driver)


@contextmanager
def under_way(work: Callable[[], object]) -> Iterator[None]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    yield
    worker.join(WAIT_S)
    assert not worker.is_alive()
    assert errors == []


def waits_and_holds_nothing(work: Callable[[], object], url: str, lock: str, slots: list) -> None:
    with psycopg.connect(url) as other:
        other.execute(lock.encode())
        with under_way(work):
            until(lambda: assert_lock_is_waited_for(url), AssertionError)
            assert other.execute(ALL_MESSAGES).fetchall()
            other.execute(ALL_KEYS)
            for slot in slots:
                assert other.execute(FREE_SLOT.format(slot).encode()).fetchone() == (True,)
            other.rollback()


@pytest.mark.parametrize(
    "work", [*NEVER_WAIT, *WAIT_FOR_GROUPS, "complete_plainly", "fail_plainly"]
)
def test_a_transaction_that_waits_for_the_list_of_queues_has_locked_no_group_and_no_message(
    scene, postgres_url, work
):
    slots = [slot_of(postgres_url, queue, "a") for queue in (scene.orders, scene.letters)]

    waits_and_holds_nothing(getattr(scene, work), postgres_url, NO_QUEUES, slots)

    check_counters(scene.driver)


@pytest.mark.parametrize("work", WAIT_FOR_GROUPS)
def test_a_transaction_that_waits_for_a_group_has_locked_no_message(scene, postgres_url, work):
    lock = SLOT.format(slot_of(postgres_url, scene.orders, "a"))

    waits_and_holds_nothing(getattr(scene, work), postgres_url, lock, [])

    check_counters(scene.driver)


@pytest.mark.parametrize("work", ENTER_LETTERS)
def test_a_transaction_that_waits_for_a_group_that_a_message_may_enter_has_locked_no_message(
    scene, postgres_url, work
):
    lock = SLOT.format(slot_of(postgres_url, scene.letters, "a"))

    waits_and_holds_nothing(getattr(scene, work), postgres_url, lock, [])

    check_counters(scene.driver)


@pytest.mark.parametrize("work", NEVER_WAIT)
@pytest.mark.parametrize("which", ["orders", "letters"])
def test_a_sweep_skips_a_locked_group(scene, postgres_url, work, which):
    queue = getattr(scene, which)
    with psycopg.connect(postgres_url) as other:
        other.execute(SLOT.format(slot_of(postgres_url, queue, "a")).encode())

        getattr(scene, work)()

    check_counters(scene.driver)


def test_an_expired_lease_waits_until_the_group_of_its_dead_letter_is_unlocked(
    driver, postgres_url
):
    letters = driver.queue("letters", ordering="group")
    mail = driver.queue(max_attempts=1, lease_ms=MINUTE, dead_letter_queue="letters")
    ids = [driver.send(mail, group=group) for group in "ab"]
    driver.claim(mail, 2)
    driver.clock.advance(minutes=1)

    with psycopg.connect(postgres_url) as other:
        other.execute(SLOT.format(slot_of(postgres_url, letters, "a")).encode())
        driver.claim(mail)
        assert driver.browse_ids(letters, State.READY) == ids[1:]

    driver.claim(mail)
    assert sorted(driver.browse_ids(letters, State.READY)) == sorted(ids)
    check_counters(driver)


def test_messages_are_redriven_from_a_standard_queue_to_an_ordered_one(driver, postgres_url):
    driver.queue("letters")
    orders = driver.queue("orders", ordering="group", max_attempts=1, dead_letter_queue="letters")
    letters = driver.read(lambda s: s.queues.find("letters"))
    for _ in range(2):
        driver.send(orders, group="a")
        for m in driver.claim(orders):
            driver.act(Verb.FAIL, m)
    lock = SLOT.format(slot_of(postgres_url, orders, "a"))

    def redrive() -> None:
        redriven = purge_like(driver, letters, "redrive", limit=1)
        assert redriven == 1

    for _ in range(2):  # detected the first time, known the second time
        waits_and_holds_nothing(redrive, postgres_url, lock, [])

    assert [m.is_blocked for m in driver.browse(orders, State.READY)] == [False, True]
    check_counters(driver)


def purge_like(driver: StoreDriver, queue: Queue, what: str, *, limit: int) -> int:
    to = {"to": None} if what == "redrive" else {}
    return driver.write(
        lambda s: getattr(s.messages, what)(queue.queue_no, limit=limit, now=driver.now, **to)
    )


@pytest.mark.parametrize("ordering", ["standard", "group"])
@pytest.mark.parametrize("what", ["purge", "redrive"])
def test_a_step_whose_rows_have_changed_continues_with_what_is_left(
    drivers, postgres_url, what, ordering
):
    """0 means that nothing is left: so it must not be returned because of other transactions."""
    orders = drivers[0].queue("orders", ordering=ordering)
    ids = drivers[0].send_many(orders, 4, group="a")
    if what == "redrive":
        for message_id in ids:
            drivers[0].alter(message_id, lambda m, _: lifecycle.bury(m))
    is_in, may_go = threading.Event(), threading.Event()

    def first(session) -> int:
        to = {"to": None} if what == "redrive" else {}
        do = getattr(session.messages, what)
        done = do(orders.queue_no, limit=2, now=drivers[0].now, **to)
        is_in.set()
        assert may_go.wait(WAIT_S)
        return done

    done: list[int] = []
    with under_way(lambda: done.append(drivers[0].write(first))):
        assert is_in.wait(WAIT_S)
        with under_way(lambda: done.append(purge_like(drivers[1], orders, what, limit=2))):
            if what == "purge" or ordering == "group":  # otherwise they take different ones
                until(lambda: assert_lock_is_waited_for(postgres_url), AssertionError)
            may_go.set()

    assert done == [2, 2] or (what, ordering) == ("redrive", "standard")
    assert sum(done) == 4
    check_counters(drivers[0])


@pytest.mark.parametrize("ordering", ["standard", "group"])
def test_a_purge_skips_locked_messages_and_waits_only_for_the_last(driver, postgres_url, ordering):
    orders = driver.queue(ordering=ordering)
    busy, *_ = driver.send_many(orders, 3)

    with psycopg.connect(postgres_url) as other:
        other.execute(ONE_MESSAGE.format(busy).encode())
        assert purge_like(driver, orders, "purge", limit=10) == 2
        done: list[int] = []
        with under_way(lambda: done.append(purge_like(driver, orders, "purge", limit=10))):
            until(lambda: assert_lock_is_waited_for(postgres_url), AssertionError)
            other.rollback()

    assert done == [1]
    assert purge_like(driver, orders, "purge", limit=10) == 0
    check_counters(driver)


def test_two_changes_by_hand_do_not_deadlock(driver, postgres_url):
    """Submitted together they would be one transaction, with locks in the order of submission."""
    orders = driver.queue(ordering="group")
    a, b = (driver.send(orders, group=group) for group in "ab")
    slots = {group: slot_of(postgres_url, orders, group) for group in "ab"}

    def cancel(message_id: str):
        return driver.store.write(
            lambda s: s.messages.change(
                message_id, lambda m, _: lifecycle.cancel(m), now=driver.now
            )
        )

    with psycopg.connect(postgres_url) as other:
        other.execute(SLOT.format(slots["b"]).encode())
        with driver.together():
            tickets = [cancel(a), driver.submit_send(orders, group="a"), cancel(b)]
        until(lambda: assert_lock_is_waited_for(postgres_url), AssertionError)
        assert other.execute(FREE_SLOT.format(slots["a"]).encode()).fetchone() == (True,)
        other.rollback()

    for ticket in tickets:
        ticket.result(WAIT_S)
    check_counters(driver)


def test_a_message_that_moves_while_its_group_is_waited_for_is_read_again(driver, postgres_url):
    orders, elsewhere = (driver.queue(name, ordering="group") for name in ("orders", "elsewhere"))
    message_id = driver.send(orders, group="a")
    slots = [slot_of(postgres_url, queue, "a") for queue in (orders, elsewhere)]

    def cancel() -> None:
        found = driver.alter(message_id, lambda m, _: lifecycle.cancel(m))
        assert found.queue_no == elsewhere.queue_no

    with psycopg.connect(postgres_url) as there, psycopg.connect(postgres_url) as here:
        there.execute(SLOT.format(slots[1]).encode())
        here.execute(SLOT.format(slots[0]).encode())
        with under_way(cancel):
            until(lambda: assert_lock_is_waited_for(postgres_url), AssertionError)
            here.execute(f"UPDATE message SET queue_no = {elsewhere.queue_no}".encode())
            here.commit()
            until(lambda: assert_lock_is_waited_for(postgres_url), AssertionError)
            assert there.execute(ALL_MESSAGES).fetchall()
            there.rollback()


def test_two_nodes_that_remove_queues_do_not_deadlock(drivers, backed_off):
    names = [f"q{n}" for n in range(12)]
    for name in names:
        drivers[0].send(drivers[0].queue(name, ordering="group"), group="a")
    nodes = [QueueService(d.store, d.clock, Directory(d.store, d.clock)) for d in drivers]

    def remove(node: QueueService, mine: list[str]) -> None:
        for name in mine:
            node.remove(name, force=True).result(WAIT_S)

    at_once(*[lambda i=i: remove(nodes[i % 2], names[i::4]) for i in range(4)])

    assert backed_off == []
    check_counters(drivers[0])
