"""A wake-up reaches the other nodes; a lost one costs time only."""

import threading
from collections.abc import Mapping, Sequence

from penstock.domain.errors import StoreUnavailable
from penstock.domain.message.lease import Verb
from tests.store.driver import WAIT_S
from tests.store.postgres.helpers import cut_off, until


def test_a_send_wakes_claims_at_another_node_and_at_its_own_once(drivers):
    received: list[dict[int, int]] = []
    here: list[dict[int, int]] = []
    arrived = threading.Event()
    mail = drivers[0].queue()
    for driver in drivers:
        assert driver.store.wakeups.is_listening.wait(WAIT_S)

    def hear(woken: Mapping[int, int]) -> None:
        if woken.get(mail.queue_no):
            received.append(dict(woken))
            arrived.set()

    drivers[1].store.listen(hear)
    drivers[0].store.listen(lambda woken: here.append(dict(woken)))
    drivers[0].send_many(mail, 3)

    assert arrived.wait(WAIT_S)
    assert received == [{mail.queue_no: 3}]
    assert here == [{mail.queue_no: 3}]


def test_endings_with_a_result_are_heard_at_other_nodes(drivers):
    heard: list[str] = []
    arrived = threading.Event()
    for driver in drivers:
        assert driver.store.wakeups.is_listening.wait(WAIT_S)

    def hear(ids: Sequence[str]) -> None:
        heard.extend(ids)
        arrived.set()

    drivers[1].store.listen_for_endings(hear)
    mail = drivers[0].queue()
    drivers[0].send_many(mail, 2)
    plain, kept = drivers[0].claim(mail, 2)
    drivers[0].complete(plain)
    drivers[0].act(Verb.COMPLETE, kept, result="1")

    assert arrived.wait(WAIT_S)
    assert heard == [kept.id]


def test_wake_ups_come_back_after_the_connection_was_cut(drivers, postgres_url):
    for driver in drivers:
        assert driver.store.wakeups.is_listening.wait(WAIT_S)
    received = threading.Event()
    mail = drivers[0].queue()
    drivers[1].store.listen(lambda woken: received.set() if woken.get(mail.queue_no) else None)

    cut_off(postgres_url)
    until(lambda: drivers[0].send(mail), StoreUnavailable)

    def is_heard() -> bool:
        drivers[0].send(mail)
        return received.wait(0.1)

    assert any(is_heard() for _ in range(300))


def test_pending_announcements_are_sent_before_a_node_exits(open_one):
    first, second = open_one(), open_one()
    mail = first.queue()
    assert second.store.wakeups.is_listening.wait(WAIT_S)
    assert first.store.wakeups.is_listening.wait(WAIT_S)
    received = threading.Event()
    second.store.listen(lambda woken: received.set() if woken.get(mail.queue_no) else None)

    first.send(mail)
    first.store.close()

    assert received.wait(WAIT_S)
