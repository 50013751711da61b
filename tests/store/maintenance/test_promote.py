"""Promoting a store from SQLite to PostgreSQL copies everything or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import InvalidRequest, StoreRefused
from penstock.domain.fact import FactFilter
from penstock.domain.limits import DAY, DEFAULT_LIMITS
from penstock.domain.message import lease as leases
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.move_task import MoveState
from penstock.domain.message.step import Signal, StepTimes
from penstock.domain.queue.queue import DedupUntil
from penstock.domain.worker import NewWorker
from penstock.outbound.dice import SystemDice
from penstock.ports.store import Acted, Sent, Session
from penstock.services.bulk.moves import MoveService
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.transitions import hold
from penstock.services.routes import RouteService
from penstock.services.workers import WorkerService
from penstock.store.maintenance.promote import promote
from penstock.store.postgres.store import PostgresStore, migrate, open_postgres
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.factories import a_key
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver

ODD = "tab\t newline\n return\r backslash \\ \\N quote \" ' end \u20ac \U0001f426"
NOT_COPIED = {"migration", "sequence"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "penstock.db"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def full(path: Path, clock: ManualClock) -> StoreDriver:
    """A SQLite store that has seen a bit of everything, closed."""
    driver = StoreDriver(open_sqlite(path), clock)
    mail = driver.queue("mail", max_attempts=2, dead_letter_queue="dead")
    orders = driver.queue("orders", ordering="group")
    driver.queue("dead")
    gone = driver.queue("gone")
    driver.write(lambda s: s.queues.remove(gone.queue_no, now=clock.now()))
    driver.write(lambda s: s.keys.add(a_key(name=ODD)))
    workers = WorkerService(driver.store, clock, SystemDice(), DEFAULT_LIMITS)
    workers.register(NewWorker(name="näme", labels={"odd": ODD})).result()
    moves = MoveService(driver.store, clock, SystemDice())
    moves.start("orders", max_per_second=5).result()
    moves.step(moves.start("dead", target="mail").result().task_id, now=clock.now()).result()
    for day in range(3):
        driver.send_many(mail, 40, kind="greeting", tags=("a", "b"))
        driver.send(mail, body=f'"{day}"', attributes={"odd": ODD}, entity_id=ODD, trace=ODD)
        driver.send(mail, delay_ms=10**9, dedup_key=f"key-{day}")
        driver.send(mail, dedup_key=f"held-{day}", dedup_until=DedupUntil.ENDED, delay_ms=10**9)
        driver.send(orders, timeout_ms=day + 1, retries_timeouts=True, route=ODD)
        for group in ("x", "x", "y"):
            driver.send(orders, group=group)
        for verb in (Verb.COMPLETE, Verb.FAIL, Verb.BURY, Verb.CANCEL, Verb.RELEASE):
            for m in driver.claim(mail, 3):
                driver.act(verb, m, text=ODD)
        [first, *_] = driver.claim(orders, 1)
        driver.act(Verb.EXTEND, first, is_start=True, progress='"1\\n2"')
        driver.act(Verb.CRASH, first, text=ODD)
        for m in driver.claim(orders, 1):
            driver.complete(m)
        clock.advance(days=1)
    _suspend_one(driver)
    return driver


def _suspend_one(driver: StoreDriver) -> None:
    """A job with a step that waits for a signal, and a signal that is kept."""
    durable = driver.queue("durable")
    driver.send(durable)
    [held] = driver.claim(durable)
    lease, now = Lease.of(held), driver.now
    driver.write(
        lambda s: s.steps.record(lease, ODD, f'"{ODD.encode().hex()}"', StepTimes(), now=now)
    )
    driver.write(lambda s: s.signals.wait(lease, "go", "wait", until_at=now + DAY, now=now))
    driver.act(Verb.SNOOZE, held, delay_ms=DAY, signal="go")
    driver.write(lambda s: s.signals.send(Signal(ODD, "1", now, now + DAY)))


@pytest.fixture
def promoted(
    full: StoreDriver, path: Path, postgres_url: str
) -> Iterator[tuple[StoreDriver, PostgresStore]]:
    """The old driver and the new store."""
    full.store.close()
    migrate(postgres_url)
    promote(path, postgres_url, progress=lambda *_: None)
    store = open_postgres(postgres_url)
    yield full, store
    store.close()


def test_every_row_of_every_table_arrives(promoted, path, postgres_url):
    source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [t for (t,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables = [t for t in tables if t not in NOT_COPIED and not t.startswith("sqlite")]

    with psycopg.connect(postgres_url) as target:
        for table in tables:
            names = [name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")]
            text = f"SELECT {', '.join(names)} FROM {table}"
            found = target.execute(text.encode()).fetchall()
            assert set(found) == set(source.execute(text)), table

    assert {"message", "queue", "counter", "dedup", "api_key", "meta", "day", "move_task"} <= set(
        tables
    )
    assert {"worker", "fact", "step", "signal", "signal_waiter"} <= set(tables)
    assert sum(table.startswith("history_") for table in tables) >= 3


def test_the_new_store_answers_as_the_old_one_did(promoted, clock):
    old, store = promoted
    new = StoreDriver(store, clock)
    new.queues, new.sent_ids = old.queues, old.sent_ids

    check_counters(new)
    assert len(new.endings()) > 10
    assert new.read(lambda s: [key.name for key in s.keys.all()]) == [ODD]
    [ending] = new.endings(kind="greeting", limit=1)
    assert new.read(lambda s: s.history.content(ending)) is not None


def test_workers_and_facts_move_along_and_new_facts_follow_them(promoted, clock):
    _, store = promoted
    workers = WorkerService(store, clock, SystemDice(), DEFAULT_LIMITS)
    [worker] = workers.all().result()

    workers.leave(worker.id).result()

    facts = store.read(lambda s: s.facts.search(FactFilter(subject=worker.id))).result()
    assert (worker.name, worker.labels) == ("näme", {"odd": ODD})
    assert [fact.kind for fact in facts] == ["worker_left", "worker_registered"]
    assert facts[0].fact_no > facts[1].fact_no


def test_a_suspended_job_continues_in_the_new_store(promoted, clock):
    old, store = promoted
    new = StoreDriver(store, clock)
    [durable] = [queue for queue in old.queues if queue.name == "durable"]

    assert new.write(lambda s: s.signals.send(Signal("go", "2", clock.now(), clock.now())))[2] == 1

    [held] = new.claim(durable)
    found, _ = new.read(lambda s: s.steps.page(held.message_no, after_no=0, limit=9, max_bytes=DAY))
    assert [(step.name, step.outcome) for step in found] == [
        (ODD, f'"{ODD.encode().hex()}"'),
        ("wait", '{"body":2}'),
    ]
    assert new.read(lambda s: s.signals.find(ODD, now=clock.now())) is not None


def test_circuits_the_queues_they_hold_and_their_settings_move_along(
    full, path, clock, postgres_url
):
    queue = full.queue("held")
    before = CircuitService(full.store, clock, RouteService(full.store, clock))
    before.breaker.put(BreakerSettings(statistics_update_enabled=True)).result()
    before.force_open(circuit_hash(ODD), pattern=ODD).result()

    def hold_it(session: Session) -> None:
        session.circuits.lock([circuit_hash(ODD)])
        hold(session, {circuit_hash(ODD): [queue.queue_no]}, now=clock.now())

    full.write(hold_it)
    full.store.close()
    migrate(postgres_url)
    promote(path, postgres_url, progress=lambda *_: None)

    with closing(open_postgres(postgres_url)) as store:
        after = CircuitService(store, clock, RouteService(store, clock))
        after.refresh()
        assert after.settings.statistics_update_enabled
        view = after.find(circuit_hash(ODD)).result()
        assert view is not None
        assert (view.circuit.pattern, view.circuit.is_forced, view.held) == (ODD, True, 1)
        after.force_open(circuit_hash("new"), pattern="new").result()
        assert len(after.all().result()) == 2


def test_a_move_task_continues_in_the_new_store(promoted, clock):
    _, store = promoted
    moves = MoveService(store, clock, SystemDice())
    [task] = moves.of_source("orders").result()

    for task_id in moves.active().result():
        moves.step(task_id, now=clock.now()).result()

    [ended] = moves.of_source("dead").result()
    assert (task.state, task.max_per_second, task.source) == (MoveState.RUNNING, 5, "orders")
    assert (ended.state, ended.target) == (MoveState.COMPLETED, "mail")
    assert moves.get(task.task_id).result().state is MoveState.COMPLETED


def test_a_receipt_of_the_old_store_is_valid_in_the_new_one(full, path, clock, postgres_url):
    [held] = full.claim(full.queues[0])
    receipt = leases.receipt(Lease.of(held), secret=full.store.secret)
    full.store.close()
    migrate(postgres_url)
    promote(path, postgres_url, progress=lambda *_: None)

    store = open_postgres(postgres_url)
    lease = leases.read_receipt(receipt, secret=store.secret)
    act = LeaseAct(lease=lease, verb=Verb.COMPLETE, now=clock.now())
    [answer] = store.act([act]).result(WAIT_S)
    store.close()

    assert answer == Acted(held.id, State.DONE, clock.now())


def test_numbers_continue_where_they_were(promoted, clock):
    old, store = promoted
    new = StoreDriver(store, clock)
    last = max(m.message_no for q in old.queues for s in State for m in _all(new, q, s))

    new.send(old.queues[0])
    again = new.queue("again")

    found = [m for m in new.browse(old.queues[0], State.READY) if m.message_no > last]
    assert len(found) == 1
    assert again.queue_no > max(queue.queue_no for queue in old.queues)


def test_keys_of_the_old_store_still_find_duplicates(promoted, clock):
    old, store = promoted
    new = StoreDriver(store, clock)
    new.change(old.queues[0], dedup_window_ms=10**10)
    clock.advance(days=-1)

    [answer] = new.submit_send(old.queues[0], dedup_key="key-2").result(WAIT_S)

    assert isinstance(answer, Sent)
    assert answer.is_duplicate


def test_the_latest_instant_is_remembered(promoted):
    old, store = promoted

    assert store.clock_mark >= old.clock.now() - DAY


def test_progress_is_reported_by_table(full, path, postgres_url):
    full.store.close()
    migrate(postgres_url)
    steps: list[tuple[str, int, int]] = []

    counts = promote(path, postgres_url, progress=lambda *step: steps.append(step))

    assert {table: done for table, done, _ in steps} == {t: n for t, n in counts.items() if n}
    assert all(done <= total for _, done, total in steps)


def test_a_store_that_is_not_empty_is_not_touched(full, path, postgres_url):
    full.store.close()
    migrate(postgres_url)
    store = open_postgres(postgres_url)
    StoreDriver(store, ManualClock()).queue("mine")
    store.close()

    with pytest.raises(StoreRefused, match="not empty"):
        promote(path, postgres_url, progress=lambda *_: None)

    assert count(postgres_url, "queue") == 1


def test_a_store_without_our_schema_is_refused(full, path, postgres_url):
    full.store.close()

    with pytest.raises(StoreRefused, match="postgres store is not current"):
        promote(path, postgres_url, progress=lambda *_: None)


def test_a_missing_store_is_refused(tmp_path, postgres_url):
    with pytest.raises(InvalidRequest, match="no store at"):
        promote(tmp_path / "nothing.db", postgres_url, progress=lambda *_: None)


def test_counters_that_do_not_add_up_are_refused_and_nothing_is_left_behind(
    full, path, postgres_url
):
    full.store.close()
    migrate(postgres_url)
    change(path, "UPDATE counter SET ready = ready + 1 WHERE queue_no = 1")

    with pytest.raises(StoreRefused, match=r"do not add up: \[1\]"):
        promote(path, postgres_url, progress=lambda *_: None)

    assert count(postgres_url, "message") == count(postgres_url, "queue") == 0


def test_after_a_failure_in_the_middle_it_can_be_tried_again(full, path, postgres_url):
    full.store.close()
    migrate(postgres_url)

    def break_down(table: str, done: int, total: int) -> None:
        if table == "message":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        promote(path, postgres_url, progress=break_down)
    assert count(postgres_url, "api_key") == 0
    counts = promote(path, postgres_url, progress=lambda *_: None)

    assert count(postgres_url, "message") == counts["message"] > 0


def _all(driver: StoreDriver, queue, state: State):
    is_browsable = state in (State.WAITING, State.READY, State.LEASED, State.DEAD)
    return driver.browse(queue, state) if is_browsable else []


def count(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()[0][0]


def change(path: Path, statement: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(statement)
    db.close()
