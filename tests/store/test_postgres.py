"""What is special about PostgreSQL: several stores on one database, and a server that fails."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from msgspec.structs import replace

from penstock.domain import message as lifecycle
from penstock.domain.draft import NewMessage
from penstock.domain.errors import InvalidRequest, QueueFull, QueueNotFound, StoreRefused
from penstock.domain.errors import StoreUnavailable as Unavailable
from penstock.domain.lease import Verb
from penstock.domain.limits import DAY
from penstock.domain.message import Content, State
from penstock.domain.queue import Queue, QueueSettings
from penstock.ports.store import Acted, Claim, Sent
from penstock.store import postgres_store
from penstock.store.postgres import _encoded, _statement
from penstock.store.postgres_store import PostgresStore, migrate, open_postgres, pending_sql
from tests.clocks import NOON, ManualClock
from tests.factories import a_new_message
from tests.store.desk import WAIT_S, Desk
from tests.store.recount import check_books
from tests.support.postgres import PostgresCluster

DURABLE = {"server_version_num": "130000", "fsync": "on", "full_page_writes": "on"}

Open = Callable[..., PostgresStore]


@pytest.fixture
def open_one(postgres_url: str) -> Iterator[Open]:
    """Opens one more store on the test's own database."""
    migrate(postgres_url)
    stores: list[PostgresStore] = []

    def open_it(options: str = "", *, lanes: int = 2) -> PostgresStore:
        stores.append(open_postgres(postgres_url + options, lanes=lanes))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def desks(open_one: Open, clock: ManualClock) -> list[Desk]:
    """Two nodes."""
    return [Desk(open_one(), clock), Desk(open_one(), clock)]


# ---- refusals and migrations


@pytest.mark.parametrize(
    ("fact", "value", "reason"),
    [
        ("server_version_num", "120022", "PostgreSQL 12 is too old"),
        ("fsync", "off", "fsync is off"),
        ("full_page_writes", "off", "full_page_writes is off"),
        ("data_sync_retry", "on", "data_sync_retry is on"),
        ("server_encoding", "SQL_ASCII", "server_encoding is SQL_ASCII"),
    ],
)
def test_a_server_that_cannot_keep_our_promises_is_refused(fact, value, reason):
    with pytest.raises(StoreRefused, match=reason):
        postgres_store.refuse_unsafe(DURABLE | {fact: value})


def test_the_oldest_server_that_is_durable_is_accepted():
    postgres_store.refuse_unsafe(DURABLE)


def test_a_database_without_our_schema_is_refused_with_the_remedy(postgres_url):
    with pytest.raises(StoreRefused, match="run: penstock migrate"):
        open_postgres(postgres_url)


def test_what_has_been_migrated_is_not_migrated_again(postgres_url):
    first = migrate(postgres_url)

    again = migrate(postgres_url)

    assert [m.number for m in first] == [1]
    assert again == []


def test_of_two_who_migrate_at_once_one_does_it(postgres_url):
    applied = at_once(lambda: migrate(postgres_url), lambda: migrate(postgres_url))

    assert sorted(map(len, applied)) == [0, 1]
    open_postgres(postgres_url).close()


def test_a_migration_that_was_changed_afterwards_is_refused(postgres_url):
    migrate(postgres_url)
    by_hand(postgres_url, "UPDATE migration SET checksum = 'another'")

    with pytest.raises(StoreRefused, match="another text"):
        open_postgres(postgres_url)


def test_the_script_of_what_is_pending_does_what_migrate_does(postgres_url):
    script = pending_sql(postgres_url)
    by_hand(postgres_url, script)

    assert pending_sql(postgres_url) == ""
    open_postgres(postgres_url).close()


def test_without_a_server_the_script_holds_every_migration():
    assert "CREATE TABLE message" in pending_sql(None)


@pytest.mark.parametrize("options", ["?prepare=maybe", "?timeout_ms=soon", "?timeout_ms=1"])
def test_options_that_make_no_sense_are_refused(postgres_url, options):
    with pytest.raises(InvalidRequest):
        open_postgres(postgres_url + options)


def test_a_server_that_is_not_there_is_unavailable():
    with pytest.raises(Unavailable, match="cannot reach PostgreSQL"):
        open_postgres("postgresql://nobody@127.0.0.1:1/nothing")


# ---- several nodes


def test_two_nodes_never_lease_the_same_message(desks):
    mail = desks[0].queue()
    desks[0].send_many(mail, 200)

    def claim_all(desk: Desk) -> list[str]:
        ids = []
        while claimed := desk.claim(mail, 3):
            ids += [m.id for m in claimed]
        return ids

    takers = [lambda desk=desk: claim_all(desk) for desk in desks for _ in range(4)]
    claimed = [message_id for ids in at_once(*takers) for message_id in ids]

    assert len(claimed) == len(set(claimed)) == 200
    assert desks[1].counts(mail).leased == 200


def test_groups_stay_in_order_whoever_sends_and_finishes(desks, clock):
    """Six senders and six finishers on two nodes: of each group one at a time, in its order."""
    orders = desks[0].queue(ordering="group", lease_ms=DAY)
    done: dict[str, list[int]] = {}
    in_hand: list[str] = []
    overlaps: list[str] = []

    def send(desk: Desk, sender: int) -> None:
        for n in range(30):
            group = f"{sender}-{n % 3}"  # each group has one sender, so that its order is known
            desk.send(orders, group=group, priority=0, kind=str(n))

    def finish(desk: Desk) -> None:
        while sum(map(len, done.values())) < 6 * 30:
            claimed = desk.claim(orders, 5)
            for m in claimed:
                overlaps.extend(group for group in in_hand if group == m.group)
                in_hand.append(m.group)
            for m in claimed:
                done.setdefault(m.group, []).append(int(m.kind))
                in_hand.remove(m.group)
                desk.complete(m)

    work = [lambda i=i: send(desks[i % 2], i) for i in range(6)]
    work += [lambda i=i: finish(desks[i % 2]) for i in range(6)]
    at_once(*work)

    assert overlaps == []
    assert done == {f"{s}-{g}": list(range(g, 30, 3)) for s in range(6) for g in range(3)}
    check_books(desks[0])


def test_one_group_shared_by_all_is_never_leased_twice_nor_stuck(desks):
    """Senders race finishers for the same group: the moment in which it becomes empty."""
    orders = desks[0].queue(ordering="group", lease_ms=DAY)
    in_hand = threading.Semaphore(1)
    finished: list[str] = []

    def send(desk: Desk) -> None:
        for _ in range(25):
            desk.send(orders, group="one")

    def finish(desk: Desk) -> None:
        while len(finished) < 100:
            for m in desk.claim(orders, 5):
                assert in_hand.acquire(blocking=False), "two of the group at once"
                finished.append(m.id)
                in_hand.release()
                desk.complete(m)

    at_once(*[lambda i=i: send(desks[i % 2]) for i in range(4)], lambda: finish(desks[0]),
            lambda: finish(desks[1]))  # fmt: skip

    assert len(set(finished)) == 100
    check_books(desks[0])


def test_a_batch_locks_all_its_groups_at_once_and_in_one_order(open_one, clock, postgres_url):
    """One that sends to the later group and finishes the earlier one does not wait crosswise."""
    desk = Desk(open_one(lanes=1), clock)
    orders = desk.queue(ordering="group", lease_ms=DAY)
    slots = {g: slot_of(postgres_url, orders, g) for g in ("a", "b")}
    earlier, later = sorted(slots, key=slots.__getitem__)
    desk.send(orders, group=earlier)
    [held] = desk.claim(orders)

    def send_and_finish() -> None:
        with desk.together():
            sent = desk.submit_send(orders, group=later)
            done = desk.submit_act(Verb.COMPLETE, held)
        assert isinstance(sent.result(WAIT_S)[0], Sent)
        assert isinstance(done.result(WAIT_S)[0], Acted)

    with psycopg.connect(postgres_url) as other:
        other.execute(f"SELECT pg_advisory_xact_lock(1885697140, {slots[earlier]})".encode())
        worker = threading.Thread(target=send_and_finish)
        worker.start()
        until(lambda: somebody_waits(postgres_url), AssertionError)
        other.execute("SET LOCAL deadlock_timeout = '10ms'")
        other.execute(f"SELECT pg_advisory_xact_lock(1885697140, {slots[later]})".encode())

    worker.join(WAIT_S)
    assert desk.counts(orders).ready == 1


def test_a_limit_holds_although_several_nodes_count_at_once(desks):
    mail = desks[0].queue(max_messages=10)

    def send(desk: Desk) -> list[object]:
        return [desk.submit_send(mail).result(WAIT_S)[0] for _ in range(6)]

    answers = [a for part in at_once(*[lambda d=d: send(d) for d in desks * 2]) for a in part]

    assert sum(isinstance(a, Sent) for a in answers) == 10
    assert sum(isinstance(a, QueueFull) for a in answers) == 14
    assert desks[0].counts(mail).ready == 10


def test_the_same_key_from_two_nodes_is_one_message(desks):
    mail = desks[0].queue()
    senders = [
        lambda d=d: d.submit_send(mail, dedup_key="one").result(WAIT_S)[0] for d in desks * 4
    ]

    answers = at_once(*senders)

    assert len({a.id for a in answers}) == 1
    assert [a.is_duplicate for a in answers].count(False) == 1


def test_who_removes_a_queue_waits_for_those_who_are_sending_to_it(desks, postgres_url):
    [desk, _] = desks
    mail = desk.queue()
    removed = threading.Event()

    def remove(session) -> None:
        session.queues.stop_sends(mail.queue_no)
        session.queues.remove(mail.queue_no, now=NOON)

    with psycopg.connect(postgres_url) as sender:
        sender.execute("SELECT settings FROM queue")  # as every send does before it stores anything
        remover = threading.Thread(target=lambda: (desk.write(remove), removed.set()))
        remover.start()

        assert not removed.wait(0.2)

    assert removed.wait(WAIT_S)
    remover.join()
    [answer] = desk.submit_send(mail).result(WAIT_S)
    assert isinstance(answer, QueueNotFound)


def test_two_nodes_may_make_the_tables_of_the_same_day(desks, clock):
    mail = desks[0].queue()
    for _ in range(3):
        clock.advance(days=1)

        at_once(*[lambda d=d: d.send(mail) for d in desks * 2])

    assert desks[0].counts(mail).ready == 12
    assert len(desks[1].claim(mail, 20)) == 12


def test_nodes_sign_receipts_with_the_same_secret(desks):
    assert desks[0].store.secret == desks[1].store.secret
    assert len(desks[0].store.secret) == 32


def test_the_databases_time_is_told_in_milliseconds(desks):
    told = [postgres_store.clock_of(desk.store)() for desk in desks]

    assert 1_700_000_000_000 < told[0] <= told[1] < told[0] + 60_000


# ---- wake-ups


def test_a_send_wakes_those_who_wait_at_another_node_and_its_own_once(desks):
    heard: list[dict[int, int]] = []
    here: list[dict[int, int]] = []
    arrived = threading.Event()
    mail = desks[0].queue()
    for desk in desks:
        assert desk.store.wakeups.is_listening.wait(WAIT_S)

    def hear(woken) -> None:
        if woken.get(mail.queue_no):
            heard.append(dict(woken))
            arrived.set()

    desks[1].store.listen(hear)
    desks[0].store.listen(lambda woken: here.append(dict(woken)))
    desks[0].send_many(mail, 3)

    assert arrived.wait(WAIT_S)
    assert heard == [{mail.queue_no: 3}]
    assert here == [{mail.queue_no: 3}]


def test_wake_ups_come_back_after_the_connection_was_cut(desks, postgres_url):
    for desk in desks:
        assert desk.store.wakeups.is_listening.wait(WAIT_S)
    heard = threading.Event()
    mail = desks[0].queue()
    desks[1].store.listen(lambda woken: heard.set() if woken.get(mail.queue_no) else None)

    cut_off(postgres_url)
    until(lambda: desks[0].send(mail), Unavailable)

    def is_heard() -> bool:
        desks[0].send(mail)
        return heard.wait(0.1)

    assert any(is_heard() for _ in range(300))


def test_what_is_untold_at_the_end_is_told_before_a_node_goes(open_one, clock):
    first, second = Desk(open_one(), clock), Desk(open_one(), clock)
    mail = first.queue()
    assert second.store.wakeups.is_listening.wait(WAIT_S)
    assert first.store.wakeups.is_listening.wait(WAIT_S)
    heard = threading.Event()
    second.store.listen(lambda woken: heard.set() if woken.get(mail.queue_no) else None)

    first.send(mail)
    first.store.close()

    assert heard.wait(WAIT_S)


# ---- a server that fails


def test_after_a_restart_of_the_server_the_store_works_again(
    desks, postgres_cluster: PostgresCluster
):
    mail = desks[0].queue()
    kept = desks[0].send(mail)

    postgres_cluster.restart()

    assert desks[0].claim_ids(mail) == [kept]
    assert desks[0].read(lambda s: s.queues.find("mail")) == mail


def test_a_cut_in_the_middle_of_a_transaction_is_told_and_keeps_nothing(desks, postgres_url):
    mail = desks[0].queue()

    def add_and_be_cut_off(session) -> None:
        session.queues.add("half", QueueSettings(), now=NOON)
        cut_off(postgres_url)

    with pytest.raises(Unavailable):
        desks[0].write(add_and_be_cut_off)

    assert desks[0].read(lambda s: s.queues.find("half")) is None
    desks[0].send(mail)


def test_a_server_that_says_nothing_is_given_up_in_time(open_one, clock, postgres_url):
    desk = Desk(open_one("?timeout_ms=300", lanes=1), clock)
    mail = desk.queue()

    with stopped(postgres_url):
        with pytest.raises(Unavailable, match="has not answered for 800 ms"):
            desk.send(mail)

        desk.send(mail)  # on another connection

    assert desk.counts(mail).ready == 1


def test_a_reader_that_gets_no_answer_is_replaced_too(open_one, clock, postgres_url):
    desk = Desk(open_one("?timeout_ms=300", lanes=1), clock)
    mail = desk.queue()
    for _ in range(2):  # both readers
        desk.counts(mail)

    with stopped(postgres_url):
        for _ in range(2):
            with pytest.raises(Unavailable):
                desk.counts(mail)

        assert desk.counts(mail).ready == 0


def test_a_statement_that_waits_too_long_for_a_lock_is_given_up(open_one, clock, postgres_url):
    desk = Desk(open_one("?timeout_ms=500"), clock)
    mail = desk.queue()
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE message")

        with pytest.raises(Unavailable, match="lock timeout"):
            desk.send(mail)

    desk.send(mail)


def test_two_transactions_that_wait_for_each_other_both_get_through(desks):
    mail = desks[0].queue()
    ids = desks[0].send_many(mail, 2)
    meeting = threading.Barrier(2)

    def change_both(desk: Desk, order: list[str]) -> None:
        is_first_try = True

        def do(session) -> None:
            nonlocal is_first_try
            for n, message_id in enumerate(order):
                session.messages.change(message_id, later, now=NOON)
                if n == 0 and is_first_try:
                    is_first_try = False
                    meeting.wait(WAIT_S)

        desk.write(do)

    def later(message, queue):
        return lifecycle.reschedule(message, due_at=NOON + DAY, now=NOON)

    at_once(lambda: change_both(desks[0], ids), lambda: change_both(desks[1], ids[::-1]))

    assert desks[0].counts(mail).waiting == 2
    check_books(desks[0])


# ---- the way to the server


@pytest.mark.parametrize("options", ["?prepare=off", "?prepare=on&application_name=x"])
def test_it_works_with_and_without_prepared_statements(open_one, clock, options):
    desk = Desk(open_one(options), clock)
    mail = desk.queue()
    desk.send_many(mail, 70)

    for m in desk.claim(mail, 100):
        desk.complete(m)

    assert desk.counts(mail).done_total == 70
    check_books(desk)


def test_prepared_statements_that_a_proxy_has_lost_are_done_without(open_one, clock):
    desk = Desk(open_one(lanes=1), clock)
    mail = desk.queue()
    desk.send(mail)
    # Another server connection, as after a transaction through a proxy.
    desk.write(lambda s: s.db.script("DEALLOCATE ALL"))

    desk.send(mail)

    assert desk.counts(mail).ready == 2


def test_a_text_that_postgresql_cannot_keep_is_refused_and_hits_only_its_sender(open_one, clock):
    desk = Desk(open_one(lanes=1), clock)
    mail = desk.queue()
    whole, cut, half = (
        NewMessage(replace(a_new_message(mail).message, kind=kind), Content('"x"'))
        for kind in ("whole", "cut\0short", "half \ud800")
    )
    with desk.together():
        good, bad, worse = (desk.store.send([new]) for new in (whole, cut, half))

    assert isinstance(good.result(WAIT_S)[0], Sent)
    for ticket in (bad, worse):
        with pytest.raises(InvalidRequest):
            ticket.result(WAIT_S)
    assert [m.kind for m in desk.browse(mail, State.READY)] == ["whole"]


def test_colons_and_quotes_in_texts_are_only_texts(desks):
    [desk, _] = desks
    mail = desk.queue()
    odd = "a ':name' 100% $1 \\ \"b\" {list:x} -- c ; \u20ac"
    desk.send(mail, kind=odd, group=odd, body=f'"{"x" * 100_000}"')

    [(message, content)] = desk.submit_claim(mail).result(WAIT_S).messages

    assert (message.kind, message.group) == (odd, odd)
    assert len(content.body) == 100_002


def test_a_batch_of_large_bodies_is_sent_in_parts(desks):
    [desk, _] = desks
    mail = desk.queue()
    bodies = [f'"{n}{"y" * 1_000_000}"' for n in range(40)]
    new = [a_new_message(mail, body=body) for body in bodies]

    answers = desk.store.send(new).result(WAIT_S)

    assert all(isinstance(answer, Sent) for answer in answers)
    claimed = desk.store.claim(Claim(queue_no=mail.queue_no, now=NOON, limit=40)).result(WAIT_S)
    assert [content.body for _, content in claimed.messages] == bodies


@pytest.mark.parametrize(
    "name",
    "claim fallen_due expired next_due complete by_no by_id remove unblock live_groups any_of buried "
    "dead_letters browse_ready oldest_ready".split(),
)
def test_plans_do_not_depend_on_how_full_the_tables_were(desks, postgres_url, name):
    """With a handful of rows the server would read the whole table, and go on so with a million."""
    [desk, _] = desks
    mail = desk.queue()
    desk.send_many(mail, 3)
    by_hand(postgres_url, "ANALYZE")
    params = {
        **{"queue_no": mail.queue_no, "now": NOON, "due_at": NOON, "limit": 10, "claimed_by": None},
        **{"id": "x", "message_nos": "[1, 2]", "held": "[[1, 1, 1]]", "groups": '[[1, "a"]]'},
        **{"after1": 0, "after2": 0, "after3": 0},
    }

    def plan(session) -> str:
        statement = _statement(session.db.text(f"messages.{name}", day=NOON // DAY))
        values = _encoded([params[name] for name in statement.names])
        rows = session.db._link.send(b"EXPLAIN " + statement.text, values).rows()
        return "\n".join(line for (line,) in rows)

    assert "Seq Scan on message" not in desk.write(plan)


# ---- helpers


def at_once(*work: Callable[[], object]) -> list:
    """Run all of them in threads that start together; their answers in the same order."""
    start = threading.Barrier(len(work))
    answers: list = [None] * len(work)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        start.wait(WAIT_S)
        try:
            answers[i] = work[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    return answers


def until(what: Callable[[], object], error: type[Exception]) -> None:
    """Try until it works."""
    for _ in range(100):
        try:
            what()
            return
        except error:
            continue
    raise AssertionError("it never worked")


def by_hand(url: str, statement: str) -> list:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement.encode())
        return found.fetchall() if found.description else []


def processes(url: str) -> list[int]:
    rows = by_hand(
        url,
        "SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'penstock'",
    )
    return [pid for (pid,) in rows]


def slot_of(url: str, queue: Queue, group: str) -> int:
    text = f"SELECT hashtext(concat({queue.queue_no}, '/', '{group}')) & 2047"
    return by_hand(url, text)[0][0]


def somebody_waits(url: str) -> None:
    assert by_hand(url, "SELECT 1 FROM pg_locks WHERE NOT granted")


def cut_off(url: str) -> None:
    for pid in processes(url):
        by_hand(url, f"SELECT pg_terminate_backend({pid})")


@contextmanager
def stopped(url: str) -> Iterator[None]:
    """The server's processes for our connections stand still; the system keeps the lines up."""
    pids = processes(url)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
