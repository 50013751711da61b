"""Several stores on one database: no message is leased twice, and groups stay in order."""

import threading

import psycopg
import pytest
from msgspec.structs import replace

from penstock.domain.errors import MoveRunning, QueueFull, QueueNotFound
from penstock.domain.limits import DAY
from penstock.domain.message import lifecycle
from penstock.domain.message import move_task as move
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.move_task import MoveState, MoveTask
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.outbound.dice import SystemDice
from penstock.ports.store import Acted, Sent
from penstock.services.bulk.moves import MoveService
from penstock.services.directory import Directory
from penstock.services.queues import QueueService
from penstock.store.postgres.store import clock_of
from tests.clocks import NOON
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.postgres.helpers import assert_lock_is_waited_for, at_once, slot_of, until


def a_step(moves: MoveService, task: MoveTask) -> MoveTask:
    after = moves.step(task.task_id, now=NOON).result(WAIT_S)
    assert after is not None
    return after


def test_two_nodes_never_lease_the_same_message(drivers):
    mail = drivers[0].queue()
    drivers[0].send_many(mail, 200)

    def claim_all(driver: StoreDriver) -> list[str]:
        ids = []
        while claimed := driver.claim(mail, 3):
            ids += [m.id for m in claimed]
        return ids

    takers = [lambda driver=driver: claim_all(driver) for driver in drivers for _ in range(4)]
    claimed = [message_id for ids in at_once(*takers) for message_id in ids]

    assert len(claimed) == len(set(claimed)) == 200
    assert drivers[1].counts(mail).leased == 200


def test_two_nodes_move_every_message_once_and_count_it_once(drivers, monkeypatch):
    monkeypatch.setattr(move, "CHUNK", 3)
    source, target = drivers[0].queue("source"), drivers[0].queue("target")
    ids = drivers[0].send_many(source, 120)
    nodes = [MoveService(driver.store, driver.clock, SystemDice()) for driver in drivers]
    task = nodes[0].start("source", target="target").result(WAIT_S)

    def advance(node: MoveService) -> None:
        while node.active().result(WAIT_S):
            node.step(task.task_id, now=NOON).result(WAIT_S)

    def claim_some(driver: StoreDriver) -> list[str]:
        return [m.id for _ in range(10) for m in driver.claim(source, 1)]

    *_, claimed = at_once(
        *(lambda node=node: advance(node) for node in nodes for _ in range(3)),
        lambda: claim_some(drivers[1]),
    )

    ended = nodes[1].get(task.task_id).result(WAIT_S)
    moved = drivers[0].browse_ids(target, State.READY)
    assert (ended.state, ended.moved) == (MoveState.COMPLETED, len(moved))
    assert sorted(moved + claimed) == sorted(ids)
    drivers[0].queues = [source, target]
    check_counters(drivers[0])


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_move_is_not_done_while_the_remaining_messages_are_locked(drivers, postgres_url, is_dead):
    """A claim locks more than it takes, until it commits."""
    source, target = drivers[0].queue("source"), drivers[0].queue("target")
    spared = drivers[0].send(source)
    if is_dead:
        drivers[0].alter(spared, lambda m, _: lifecycle.bury(m))
    moves = MoveService(drivers[0].store, drivers[0].clock, SystemDice())
    task = moves.start("source", target="target").result(WAIT_S)

    with psycopg.connect(postgres_url) as claimer:
        claimer.execute("SELECT 1 FROM message WHERE id = %s FOR UPDATE", [spared])
        meanwhile = a_step(moves, task)
    ended = a_step(moves, task)

    assert (meanwhile.state, meanwhile.moved) == (MoveState.RUNNING, 0)
    assert (ended.state, ended.moved) == (MoveState.COMPLETED, 1)
    assert drivers[0].browse_ids(target, State.READY) == [spared]


def test_a_message_whose_queue_was_removed_is_seen_although_it_is_locked(drivers, postgres_url):
    letters = drivers[0].queue("letters")
    drivers[0].queue("mail", dead_letter_queue="letters")
    ordinary = drivers[0].send(letters)
    moves = MoveService(drivers[0].store, drivers[0].clock, SystemDice())
    task = moves.start("letters").result(WAIT_S)

    with psycopg.connect(postgres_url) as claimer:
        claimer.execute("SELECT 1 FROM message WHERE id = %s FOR UPDATE", [ordinary])
        ended = a_step(moves, task)

    assert (ended.state, ended.reason) == (MoveState.FAILED, move.HOME_UNKNOWN)


def test_one_of_two_nodes_takes_the_step_and_the_other_does_not_wait(drivers):
    drivers[0].queue("source")
    nodes = [MoveService(driver.store, driver.clock, SystemDice()) for driver in drivers]
    task = nodes[0].start("source").result(WAIT_S)

    def other_comes_meanwhile(session):
        held = session.moves.lock_active(task.task_id)
        return held, nodes[1].step(task.task_id, now=NOON).result(WAIT_S)

    assert drivers[0].write(other_comes_meanwhile) == (task, None)


def test_one_of_two_nodes_that_start_a_move_at_once_is_refused(drivers):
    drivers[0].queue("source")
    nodes = [MoveService(driver.store, driver.clock, SystemDice()) for driver in drivers]

    def start(node: MoveService) -> str:
        try:
            return node.start("source").result(WAIT_S).task_id
        except MoveRunning:
            return ""

    started = at_once(*(lambda node=node: start(node) for node in nodes))

    assert sorted(map(bool, started)) == [False, True]
    assert len(nodes[0].active().result(WAIT_S)) == 1


def test_groups_stay_in_order_with_several_senders_and_finishers(drivers):
    """Six senders and six finishers on two nodes: one message of each group at a time, in order."""
    orders = drivers[0].queue(ordering="group", lease_ms=DAY)
    done: dict[str, list[int]] = {}
    in_hand: list[str] = []
    overlaps: list[str] = []

    def send(driver: StoreDriver, sender: int) -> None:
        for n in range(30):
            group = f"{sender}-{n % 3}"  # each group has one sender, so that its order is known
            driver.send(orders, group=group, priority=0, kind=str(n))

    def finish(driver: StoreDriver) -> None:
        while sum(map(len, done.values())) < 6 * 30:
            claimed = driver.claim(orders, 5)
            for m in claimed:
                overlaps.extend(group for group in in_hand if group == m.group)
                in_hand.append(str(m.group))
            for m in claimed:
                done.setdefault(str(m.group), []).append(int(str(m.kind)))
                in_hand.remove(str(m.group))
                driver.complete(m)

    work = [lambda i=i: send(drivers[i % 2], i) for i in range(6)]
    work += [lambda i=i: finish(drivers[i % 2]) for i in range(6)]
    at_once(*work)

    assert overlaps == []
    assert done == {f"{s}-{g}": list(range(g, 30, 3)) for s in range(6) for g in range(3)}
    check_counters(drivers[0])


def test_one_group_shared_by_all_is_never_leased_twice_nor_stuck(drivers):
    """Senders race finishers for the same group at the moment when it becomes empty."""
    orders = drivers[0].queue(ordering="group", lease_ms=DAY)
    in_hand = threading.Semaphore(1)
    finished: list[str] = []

    def send(driver: StoreDriver) -> None:
        for _ in range(25):
            driver.send(orders, group="one")

    def finish(driver: StoreDriver) -> None:
        while len(finished) < 100:
            for m in driver.claim(orders, 5):
                assert in_hand.acquire(blocking=False), "two of the group at once"
                finished.append(m.id)
                in_hand.release()
                driver.complete(m)

    at_once(*[lambda i=i: send(drivers[i % 2]) for i in range(4)], lambda: finish(drivers[0]),
            lambda: finish(drivers[1]))  # fmt: skip

    assert len(set(finished)) == 100
    check_counters(drivers[0])


def test_a_batch_locks_all_its_groups_at_once_and_in_one_order(driver, postgres_url):
    """A batch that sends to the later group and finishes the earlier one does not deadlock."""
    orders = driver.queue(ordering="group", lease_ms=DAY)
    slots = {g: slot_of(postgres_url, orders, g) for g in ("a", "b")}
    earlier, later = sorted(slots, key=slots.__getitem__)
    driver.send(orders, group=earlier)
    [held] = driver.claim(orders)

    def send_and_finish() -> None:
        with driver.together():
            sent = driver.submit_send(orders, group=later)
            done = driver.submit_act(Verb.COMPLETE, held)
        assert isinstance(sent.result(WAIT_S)[0], Sent)
        assert isinstance(done.result(WAIT_S)[0], Acted)

    with psycopg.connect(postgres_url) as other:
        other.execute(f"SELECT pg_advisory_xact_lock(1885697140, {slots[earlier]})".encode())
        worker = threading.Thread(target=send_and_finish)
        worker.start()
        until(lambda: assert_lock_is_waited_for(postgres_url), AssertionError)
        other.execute("SET LOCAL deadlock_timeout = '10ms'")
        other.execute(f"SELECT pg_advisory_xact_lock(1885697140, {slots[later]})".encode())

    worker.join(WAIT_S)
    assert driver.counts(orders).ready == 1


def test_max_messages_is_kept_by_several_nodes(drivers):
    mail = drivers[0].queue(max_messages=10)

    def send(driver: StoreDriver) -> list[object]:
        return [driver.submit_send(mail).result(WAIT_S)[0] for _ in range(6)]

    answers = [a for part in at_once(*[lambda d=d: send(d) for d in drivers * 2]) for a in part]

    assert sum(isinstance(a, Sent) for a in answers) == 10
    assert sum(isinstance(a, QueueFull) for a in answers) == 14
    assert drivers[0].counts(mail).ready == 10


def test_the_same_key_from_two_nodes_is_one_message(drivers):
    mail = drivers[0].queue()
    senders = [
        lambda d=d: d.submit_send(mail, dedup_key="one").result(WAIT_S)[0] for d in drivers * 4
    ]

    answers = at_once(*senders)

    assert len({a.id for a in answers}) == 1
    assert [a.is_duplicate for a in answers].count(False) == 1


def test_removing_a_queue_waits_for_sends_in_progress(driver, postgres_url):
    mail = driver.queue()
    removed = threading.Event()

    def remove(session) -> None:
        session.queues.find_to_remove("mail")
        session.queues.remove(mail.queue_no, now=NOON)

    def remove_it() -> None:
        driver.write(remove)
        removed.set()

    with psycopg.connect(postgres_url) as sender:
        sender.execute("SELECT settings FROM queue")  # as every send does before it stores anything
        remover = threading.Thread(target=remove_it)
        remover.start()

        assert not removed.wait(0.2)

    assert removed.wait(WAIT_S)
    remover.join()
    [answer] = driver.submit_send(mail).result(WAIT_S)
    assert isinstance(answer, QueueNotFound)


def test_two_nodes_may_make_the_tables_of_the_same_day(drivers, clock):
    mail = drivers[0].queue()
    for _ in range(3):
        clock.advance(days=1)

        at_once(*[lambda d=d: d.send(mail) for d in drivers * 2])

    assert drivers[0].counts(mail).ready == 12
    assert len(drivers[1].claim(mail, 20)) == 12


def test_nodes_sign_receipts_with_the_same_secret(drivers):
    assert drivers[0].store.secret == drivers[1].store.secret
    assert len(drivers[0].store.secret) == 32


def test_the_databases_time_is_read_in_milliseconds(drivers):
    instants = [clock_of(driver.store)() for driver in drivers]

    assert 1_700_000_000_000 < instants[0] <= instants[1] < instants[0] + 60_000


def test_two_nodes_that_change_settings_do_not_overwrite_each_other(drivers):
    drivers[0].queue("mail")
    nodes = [QueueService(d.store, d.clock, Directory(d.store, d.clock)) for d in drivers]

    def label(node: QueueService, name: str) -> None:
        def with_label(queue: Queue) -> QueueSettings:
            return replace(queue.settings, labels=queue.settings.labels | {name: ""})

        node.change("mail", with_label).result(WAIT_S)

    at_once(*[lambda i=i: label(nodes[i % 2], str(i)) for i in range(8)])

    found = drivers[0].read(lambda s: s.queues.find("mail"))
    assert sorted(found.settings.labels) == sorted("01234567")
    assert found.version == 1 + 8


def test_a_claim_repeated_while_it_is_in_progress_waits_for_its_answer(drivers):
    """Two nodes and several lanes get the same key at the same instant."""
    mail = drivers[0].queue(lease_ms=DAY)
    drivers[0].send_many(mail, 20)

    for key in ("a", "b", "c"):
        askers = [lambda d=d, k=key: d.claim(mail, 5, claim_key=k) for d in drivers * 3]
        answers = [[m.id for m in held] for held in at_once(*askers)]
        assert answers == [answers[0]] * 6
        assert len(answers[0]) == 5

    assert drivers[1].counts(mail).leased == 15
