"""An old transaction elsewhere in the database keeps dead rows from being removed.

These tests count the pages that statements read, because times depend on the machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from penstock.domain.limits import SECOND
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Ordering, Queue, Redelivery
from penstock.ports.store import Claim
from penstock.store.commit.session import SqlSession
from penstock.store.dead_rows.dead_rows import place_of
from penstock.store.postgres.dead_row_watch import looks_until_full
from tests.store.counter_checks import check_counters
from tests.store.postgres.conftest import Open, PostgresDriver
from tests.store.postgres.helpers import by_hand
from tests.support.waiting import eventually


@pytest.fixture
def held_snapshot(postgres_url: str) -> Iterator[psycopg.Connection]:
    """A session that reads on an old snapshot."""
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM message")
        yield holder


def pages_read(url: str, statement: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        explained = f"EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) {statement}"
        [([plan],)] = connection.execute(explained.encode()).fetchall()
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]


def test_a_commit_does_not_read_the_dead_versions_of_earlier_counters(
    driver, postgres_url, held_snapshot
):
    mail = driver.queue()
    for _ in range(400):
        driver.send(mail)

    for queue_no, row in by_hand(postgres_url, "SELECT queue_no, stripe FROM counter"):
        where = f"queue_no = {queue_no} AND stripe = {row}"
        assert pages_read(postgres_url, f"SELECT * FROM counter WHERE {where}") <= 5
    assert driver.counts(mail).ready == 400
    check_counters(driver)


def test_the_counters_of_closed_connections_are_merged(open_one, postgres_url):
    """Otherwise each restart of a node would leave rows that every reader adds up."""
    mail = open_one(lanes=1).queue()
    for _ in range(3):
        driver = open_one(lanes=1)
        for _ in range(40):
            driver.send(mail)
    by_hand(postgres_url, "UPDATE counter SET stripe = stripe / 64 * 64 + 7")  # of the same slot

    first = open_one(lanes=1)
    session = first.write(lambda s: s)
    session.transaction.counter_rows.number = 7
    first.send(mail)

    assert len(by_hand(postgres_url, "SELECT 1 FROM counter")) == 1
    assert first.counts(mail).ready == 121


def test_an_undone_transaction_leaves_the_counters_right(driver, postgres_url):
    """Also when it was the one that continued in a new row."""
    mail = driver.queue()

    def fail(session) -> None:
        session.queues.lock("mail")
        session.transaction.count(mail.queue_no).sent_total += 1
        session.transaction.close()
        raise ValueError

    for _ in range(33):
        driver.send(mail)
        with pytest.raises(Exception):  # noqa: B017, PT011
            driver.write(fail)
        driver.send(mail)

    assert driver.counts(mail).ready == 66
    assert len(by_hand(postgres_url, "SELECT 1 FROM counter")) <= 2
    check_counters(driver)


DEAD = 1_500
FEW = 400  # index entries; those of the last second or so are always read


def entries_read(driver: PostgresDriver, what: Callable[[SqlSession], object]) -> int:
    """How many entries of the claims' indexes a transaction reads, dead ones included."""

    def count(session) -> int:
        before = session.db.rows("dead_rows.entries_read")[0][0]
        what(session)
        return int(session.db.rows("dead_rows.entries_read")[0][0] - before)

    return driver.write(count)


def read_by_claim(driver: PostgresDriver, queue: Queue, **wanted) -> int:
    claim = Claim(queue_no=queue.queue_no, now=driver.now, **wanted)
    return entries_read(driver, lambda session: session._claims.claim([claim]))


def cycle(driver: PostgresDriver, queue: Queue, count: int, **draft) -> None:
    driver.send_many(queue, count, **draft)
    for m in driver.claim(queue, count):
        driver.complete(m)
    driver.clock.advance(ms=SECOND)


@pytest.fixture
def busy(open_one: Open, held_snapshot: psycopg.Connection) -> tuple[PostgresDriver, Queue]:
    """A node with a queue in which most of what a claim would read is dead, and which knows it."""
    driver = open_one(lanes=1)
    mail = driver.queue(lease_ms=60 * SECOND)
    for _ in range(DEAD // 100):
        driver.send_many(mail, 100, kind="letter")
        messages = driver.claim(mail, 100)
        with driver.together():
            acts = [driver.submit_act(Verb.COMPLETE, m) for m in messages]
        assert all(act.result(30) for act in acts)
    driver.clock.advance(ms=SECOND)

    def is_known() -> bool:
        threading.Event().wait(0.1)  # otherwise the messages of this loop would be many
        cycle(driver, mail, 3, kind="letter")
        driver.claim(mail, kinds=("letter",))
        return read_by_claim(driver, mail) + read_by_claim(driver, mail, kinds=("letter",)) < FEW

    assert read_by_claim(driver, mail) > DEAD
    eventually(is_known)
    return driver, mail


def test_claims_skip_what_is_dead(busy):
    driver, mail = busy
    claimable = lambda session: session.queues.claimable([mail.queue_no])  # noqa: E731
    due = lambda session: session.maintenance.queues_with_due(now=driver.now)  # noqa: E731
    oldest = lambda session: session.queues.oldest_ready_at(mail.queue_no)  # noqa: E731

    assert read_by_claim(driver, mail, limit=10, in_a_row=True) < FEW
    assert all(entries_read(driver, what) < FEW for what in (claimable, due, oldest))
    check_counters(driver)


def test_claims_that_skip_dead_rows_keep_the_order(busy):
    driver, mail = busy
    first, second = driver.send_many(mail, 2, kind="letter")
    claimed = driver.claim(mail, 2)
    third = driver.send(mail, kind="letter")
    urgent = driver.send(mail, kind="letter", priority=-1)
    late = driver.send(mail, kind="letter", priority=1)
    for _ in range(3):  # now other messages are dead, too
        cycle(driver, mail, 1, priority=-2)

    for m in claimed:
        driver.act(Verb.RELEASE, m)

    assert driver.claim_ids(mail, 1) == [urgent]
    assert [m.id for m in driver.claim(mail, 2, kinds=("letter",))] == [first, second]
    assert driver.claim_ids(mail, 3) == [third, late]


def test_what_falls_due_is_claimed_although_dead_rows_are_skipped(busy):
    driver, mail = busy
    delayed = driver.send(mail, due_at=driver.now + 5 * SECOND)
    [expiring] = driver.claim(mail, 1, lease_ms=3 * SECOND) or [None]
    assert expiring is None, "it is delayed"
    sent = driver.send(mail)
    driver.claim(mail, 1, lease_ms=2 * SECOND)

    driver.clock.advance(ms=2 * SECOND)
    assert driver.claim_ids(mail) == [sent]
    driver.clock.advance(ms=3 * SECOND)
    assert driver.claim_ids(mail) == [delayed]


@pytest.mark.parametrize(("entries", "looks"), [(0, 8), (250_000, 20), (100_000_000, 120)])
def test_everything_is_read_every_two_to_thirty_seconds(entries, looks):
    assert looks_until_full(entries) == looks


def test_a_message_that_another_node_puts_back_is_found(busy, open_one):
    driver, mail = busy
    driver.send(mail)
    [message] = driver.claim(mail)
    for _ in range(3):
        cycle(driver, mail, 5)

    other = open_one(lanes=1)
    other.act(Verb.RELEASE, message)
    assert driver.get(message.id).state is State.READY

    def is_claimed() -> list[Message]:
        return [m for m in driver.claim(mail, 10) if m.id == message.id]

    eventually(is_claimed)


def test_a_send_to_a_rotating_queue_is_noted_where_it_is_stored(open_one):
    driver = open_one(lanes=1)
    mail = driver.queue(ordering=Ordering.GROUP, redelivery=Redelivery.BACK)
    front = (mail.queue_no, None)
    dead_rows = driver.store.dead_rows
    dead_rows.track(front)
    dead_rows.note_claimed(mail.queue_no, [driver.get(driver.send(mail, group="a"))])
    for _ in range(3):
        dead_rows.looked(front, [], is_cut=False, is_full=False)
    assert len(dead_rows.tracked_parts(front)) == 2, "what is dead is skipped"

    stored = place_of(driver.get(driver.send(mail, group="b")))

    last_begin, _ = dead_rows.tracked_parts(front)[-1]
    assert last_begin < stored
    assert len(dead_rows.tracked_parts(front)) == 2, "no other place is read"


def test_after_the_snapshot_everything_is_read_again(busy, held_snapshot, postgres_url):
    driver, mail = busy
    held_snapshot.rollback()

    def is_forgotten() -> bool:
        by_hand(postgres_url, "VACUUM message")
        cycle(driver, mail, 1)
        driver.claim(mail, kinds=("letter",))
        return not driver.store.dead_rows.queues

    eventually(is_forgotten)
    assert read_by_claim(driver, mail) < FEW
