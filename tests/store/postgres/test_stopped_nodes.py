"""A node that stops in the middle of a transaction keeps its locks for a bounded time."""

import threading

import psycopg
import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.queue.queue import QueueSettings
from penstock.store.database import Collision
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.sessions import CHECKS, StalledSessions
from penstock.store.postgres.url import parse
from tests.clocks import NOON
from tests.faults.proxy import Proxy
from tests.store.driver import WAIT_S
from tests.store.postgres.helpers import by_hand, processes
from tests.support.waiting import eventually

SHORT = "?timeout_ms=2000"
LOCK_MAIL = "SELECT 1 FROM queue WHERE name = 'mail' FOR UPDATE"


def stop_after(session, *, sent_only: bool) -> None:
    """The write gets this far; then its process is stopped."""
    session.queues.add("half", QueueSettings(), now=NOON)
    if sent_only:
        session.db._link.send(LOCK_MAIL.encode())
        session.db._link._flush()  # as libpq does by itself when its buffer is full


@pytest.mark.parametrize("sent_only", [False, True], ids=["between statements", "while sending"])
def test_others_get_the_locks_of_a_node_that_stops_in_its_transaction(
    open_one, postgres_url, sent_only
):
    stopping, other = open_one(SHORT, lanes=1), open_one(lanes=1)
    other.queue()
    has_stopped, resumed = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def write(session) -> None:
        stop_after(session, sent_only=sent_only)
        has_stopped.set()
        resumed.wait(WAIT_S)
        session.queues.find("half")

    def run() -> None:
        try:
            stopping.write(write)
        except StoreUnavailable as error:
            errors.append(error)

    stopped = threading.Thread(target=run)
    stopped.start()
    assert has_stopped.wait(WAIT_S)
    try:
        # Adding a queue takes a lock that the stopped node holds, too.
        eventually(lambda: works(lambda: other.queue("half")))
    finally:
        resumed.set()
    stopped.join(WAIT_S)

    assert errors, "the transaction of the stopped node was reported as committed"
    assert other.send(other.read(lambda s: s.queues.find("half")))
    stopping.queue("works again")


def works(what) -> bool:
    try:
        what()
    except StoreUnavailable:
        return False
    return True


def test_a_session_that_waits_for_its_client_is_ended_after_several_looks(postgres_url):
    watcher = PostgresDatabase(parse(postgres_url))
    stalled = PostgresDatabase(parse(postgres_url))
    looks = StalledSessions()

    def look() -> int:
        watcher.begin(durable=False)
        try:
            return looks.end(watcher)
        finally:
            watcher.rollback()

    def start(statement: bytes) -> None:
        stalled._link.send(statement)
        stalled._link._flush()
        eventually(lambda: "ClientRead" in waits(postgres_url, statement.decode()))

    stalled.begin(durable=False)
    start(b"SELECT 1")
    seen = [look() for _ in range(CHECKS - 1)]
    start(b"SELECT 2")  # it continues: counting starts again
    seen += [look() for _ in range(CHECKS - 1)]
    assert seen == [0] * len(seen)

    assert look() == 1
    with pytest.raises((StoreUnavailable, Collision)):
        stalled.rows("session.process")
    watcher.close()
    stalled.close()


def waits(url: str, query: str) -> list[str]:
    rows = by_hand(url, f"SELECT wait_event FROM pg_stat_activity WHERE query = '{query}'")
    return [event for (event,) in rows]


@pytest.mark.parametrize("statement", ["COPY t FROM STDIN", "SELECT 1"])
@pytest.mark.parametrize("name", ["penstock", "another"])
def test_only_stalled_sessions_of_our_own_kind_are_ended(postgres_url, statement, name):
    by_hand(postgres_url, "CREATE TABLE t (n integer)")
    watcher = PostgresDatabase(parse(postgres_url))
    looks = StalledSessions()
    with psycopg.connect(postgres_url, application_name=name) as client:
        client.pgconn.enter_pipeline_mode()
        if statement.startswith("COPY"):
            client.pgconn.exit_pipeline_mode()
            client.pgconn.send_query(statement.encode())
        else:
            client.pgconn.send_query_params(statement.encode(), None)
            client.pgconn.send_flush_request()
        client.pgconn.flush()
        eventually(lambda: "ClientRead" in waits(postgres_url, statement))

        ended = 0
        for _ in range(CHECKS):
            watcher.begin(durable=False)
            ended += looks.end(watcher)
            watcher.rollback()
        client.close()

    watcher.close()
    assert ended == (statement == "SELECT 1" and name == "penstock")


def test_the_next_connection_ends_the_sessions_of_those_that_were_lost(
    open_one, postgres_cluster, postgres_url
):
    with Proxy(postgres_cluster.port) as proxy:
        driver = open_one(f"{SHORT}&port={proxy.port}", lanes=1)
        mail = driver.queue()
        driver.counts(mail)
        assert driver.store.wakeups.is_listening.wait(WAIT_S)
        before = set(processes(postgres_url))
        assert len(before) >= 4  # the writer, a reader, the wake-ups, perhaps the watch

        proxy.freeze()

        def is_rid_of_them() -> bool:
            has_worked = works(lambda: driver.counts(mail)) and works(lambda: driver.send(mail))
            return has_worked and not before & set(processes(postgres_url))

        eventually(is_rid_of_them)


def test_the_server_notices_that_the_host_of_an_idle_connection_is_gone(
    postgres_cluster, postgres_url
):
    quick = "keepalives_idle=1&keepalives_interval=1&keepalives_count=2&tcp_user_timeout=2000"
    with Proxy(postgres_cluster.port) as proxy:
        db = PostgresDatabase(parse(f"{postgres_url}?port={proxy.port}&{quick}"))
        assert processes(postgres_url)

        proxy.pull_cable()

        eventually(lambda: not processes(postgres_url))
        db.close()


def test_a_statement_that_waits_for_a_lock_ends_when_its_client_is_gone(postgres_url):
    by_hand(postgres_url, "CREATE TABLE t (n integer)")
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE t")
        db = PostgresDatabase(parse(f"{postgres_url}?timeout_ms=600000"))
        db.begin(durable=False)
        db._link.send(b"SELECT n FROM t")
        db._link._send_sync()
        eventually(lambda: "relation" in waits(postgres_url, "SELECT n FROM t"))

        db.close()

        eventually(lambda: not processes(postgres_url))
