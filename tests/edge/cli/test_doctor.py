"""`penstock doctor`: checks of the machine, the settings and the store."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.message.draft import Draft
from penstock.domain.queue import problem
from penstock.domain.queue.queue import QueueSettings
from penstock.services.circuits.permits import PermitRequest
from penstock.settings import Settings
from penstock.settings.values import StoreSettings
from penstock.store.meta_names import CLOCK_MARK
from penstock.wiring.broker import open_broker
from tests.clocks import ManualClock
from tests.edge.cli.conftest import STORES
from tests.edge.live import LiveServer


def test_the_doctor_reports_the_settings_of_postgresql(run, postgres_url, tmp_path):
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET synchronous_commit = local".encode())

    ran = run("doctor", "--store", postgres_url, "--data", tmp_path, "--json")

    texts = {record["name"]: record["text"] for record in ran.records}
    assert texts["synchronous_commit"].startswith("is local by default")
    assert texts["fsync"] == "is on"


def test_the_doctor_names_a_transaction_that_holds_back_vacuum(
    run, postgres_url, tmp_path, monkeypatch
):
    where = ["--store", postgres_url, "--data", tmp_path]
    run("migrate", *where)
    monkeypatch.setattr(problem, "OLD_TRANSACTION_AFTER_MS", 0)
    with psycopg.connect(postgres_url, application_name="report") as client:
        client.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        client.execute("SELECT 1 FROM queue")
        pid = client.info.backend_pid

        ran = run("doctor", *where, "--json")

    [found] = [record for record in ran.records if record["name"] == "transactions"]
    assert (ran.code, found["grade"]) == (0, "warn")
    assert found["text"].startswith(f"session {pid} (application report, user postgres) has been")
    assert f"pg_terminate_backend({pid})" in found["text"]


def test_the_doctor_warns_if_it_cannot_see_transactions_of_other_users(run, postgres_url, tmp_path):
    run("migrate", "--store", postgres_url, "--data", tmp_path)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE plain_user LOGIN")
        admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO plain_user")
    try:
        url = postgres_url.replace("postgres@", "plain_user@")
        ran = run("doctor", "--store", url, "--data", tmp_path, "--json")
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute("DROP OWNED BY plain_user")
            admin.execute("DROP ROLE plain_user")

    [found] = [record for record in ran.records if record["name"] == "transactions"]
    assert "grant it pg_read_all_stats" in found["text"]


@STORES
def test_the_doctor_finds_no_problem_in_a_healthy_store(run, where, backend):
    run("migrate", *where)
    run("keys", "create", "--name", "a", "--role", "read", *where)

    ran = run("doctor", *where, "--json")

    grades = {record["name"]: record["grade"] for record in ran.records}
    assert ran.code == 0
    assert grades.pop("server") == "warn", "none runs, and none was named"
    grades.pop("file system"), grades.pop("disk sync"), grades.pop("disk space")
    assert set(grades.values()) == {"ok"}
    expected = {"sqlite": {"journal", "integrity", "checksums"}, "postgres": {"fsync"}}
    always = {"settings", "python", "schema", "clock", "books", "limits", "holds", "flows"}
    assert always | expected[backend] <= set(grades)
    assert run("doctor", *where).out.count("\n") == len(ran.records)


def test_the_doctor_checks_the_given_server(run, make_server):
    server: LiveServer = make_server()

    good = run("doctor", "--data", server.data, "--server", server.url, "--json")
    server.stop()
    bad = run("doctor", "--data", server.data, "--server", server.url, "--json")

    assert (good.code, bad.code) == (0, 1)
    assert [good.records[-1]["grade"], bad.records[-1]["grade"]] == ["ok", "fail"]


@STORES
def test_the_doctor_reports_why_queues_are_held(run, where, backend):
    run("migrate", *where)
    named = {"store": StoreSettings(url=where[1])} if backend == "postgres" else {"data": where[1]}
    broker = open_broker(Settings(**named))
    broker.circuits.breaker.put(BreakerSettings(circuit_check_enabled=True)).result()
    patterns = ["open", "closed"]
    for pattern in patterns:
        broker.circuits.force_open(circuit_hash(pattern), pattern=pattern).result()
        made = broker.queues.put(f"of-{pattern}", QueueSettings()).result().view.queue
        asked = broker.circuits.permits([PermitRequest(pattern, made.queue_no)]).result()
        broker.circuits.secure(asked).result()
    broker.circuits.close(circuit_hash("closed")).result()

    def found() -> dict[str, str]:
        records = run("doctor", *where, "--json").records
        return {r["text"]: r["grade"] for r in records if r["name"] == "holds"}

    is_open, is_closed = sorted(found().items(), key=lambda item: "waiting" in item[0])
    assert is_open[0] == f"queue 'of-open' is held: circuit {circuit_hash('open')} (open) is open"
    assert (is_open[1], is_closed[1]) == ("warn", "warn")
    assert "queue 'of-closed' is waiting to be unheld" in is_closed[0]

    number = broker.queues.put("stray", QueueSettings()).result().view.queue.queue_no
    broker.store.write(lambda s: s.queues.hold([number], by="gone")).result()
    broker.close()
    [text] = [text for text, grade in found().items() if grade == "fail"]
    assert "queue 'stray' is held by circuit gone, and nothing will end that" in text


def test_the_doctor_detects_a_damaged_file(run, tmp_path):
    run("migrate", "--data", tmp_path)
    with (tmp_path / "penstock.db").open("r+b") as file:
        file.seek(3 * 4096 + 100)
        file.write(b"damage")

    assert run("doctor", "--data", tmp_path).code == 1


def test_the_doctor_detects_wrong_counters(run, tmp_path):
    broker = open_broker(Settings(data=str(tmp_path)))
    broker.queues.put("mail", QueueSettings()).result()
    broker.store.write(_miscount).result()
    broker.close()

    ran = run("doctor", "--data", tmp_path, "--json")

    wrong = [record["text"] for record in ran.records if record["grade"] == "fail"]
    assert ran.code == 1
    assert any(
        "mail: the counter of ready messages is 5, but there are 0" in text for text in wrong
    )


def _miscount(session: Any) -> None:
    session.transaction.count(1).ready += 5


def test_the_doctor_detects_messages_that_are_held_back_without_a_reason(run, tmp_path):
    broker = open_broker(Settings(data=str(tmp_path)))
    limited = QueueSettings(max_leased_per_group=1)
    queue = broker.queues.put("mail", limited).result().view.queue
    drafts = [broker.messages.draft(queue, Draft(body="1", group="a")) for _ in range(3)]
    broker.messages.send(drafts).result()
    broker.store.write(_hold_all_back).result()
    broker.close()

    ran = run("doctor", "--data", tmp_path, "--json")

    wrong = [record["text"] for record in ran.records if record["grade"] == "fail"]
    assert ran.code == 1
    assert wrong == ["mail, group 'a': 3 are held back, but the limit has room for 1"]


def _hold_all_back(session: Any) -> None:
    session.db.run("group_limits.hold_back_all", {"queue_no": 1})


def _set_clock_ahead(session: Any) -> None:
    session.db.run("meta.set", {"name": CLOCK_MARK, "value": str(2_999_999_999_999)})


def _write_to(where: list[str], backend: str, what: Any) -> None:
    url = where[1] if backend == "postgres" else f"sqlite:///{where[1]}/penstock.db"
    broker = open_broker(Settings(store=StoreSettings(url=url)), clock=ManualClock())
    broker.store.write(what).result()
    broker.close()


@STORES
def test_the_doctor_reports_and_repairs_a_store_clock_that_is_ahead(run, where, backend):
    run("migrate", *where)
    _write_to(where, backend, _set_clock_ahead)

    ran = run("doctor", *where, "--json")
    repaired = run("doctor", *where, "--json", "--repair-clock")
    again = run("doctor", *where, "--json", "--repair-clock")

    [found] = [record for record in ran.records if record["name"] == "clock"]
    assert (ran.code, found["grade"]) == (0, "warn")
    assert re.search(r"time is 2065-01-24T05:19:59\.999Z, the clock's 2\d{3}-.*Z", found["text"])
    assert re.search(r"the store is \d+ d .*s ahead; .* --repair-clock", found["text"])
    records = {record["name"]: record for record in repaired.records}
    assert repaired.code == 0
    assert "set back from 2065-01-24T05:19:59.999Z to 2" in records["repair-clock"]["text"]
    assert records["clock"]["grade"] == "ok"
    [nothing] = [record for record in again.records if record["name"] == "repair-clock"]
    assert nothing["text"].startswith("nothing to repair")


def test_the_doctor_does_not_repair_the_clock_of_a_store_in_use(run, tmp_path):
    where = ["--data", str(tmp_path / "data")]
    run("migrate", *where)
    url = f"sqlite:///{where[1]}/penstock.db"
    broker = open_broker(Settings(store=StoreSettings(url=url)), clock=ManualClock())
    broker.store.write(_set_clock_ahead).result()

    refused = run("doctor", *where, "--json", "--repair-clock")
    broker.close()

    records = {record["name"]: record for record in refused.records}
    assert (refused.code, records["repair-clock"]["grade"]) == (1, "fail")
    assert "a process has the store open" in records["repair-clock"]["text"]
    assert records["clock"]["grade"] == "warn", "as it was"
    missing = run("doctor", "--data", tmp_path / "nowhere", "--json", "--repair-clock")
    assert missing.code == 1
    assert not (tmp_path / "nowhere").exists()


def test_the_doctor_detects_pending_migrations_and_invalid_settings(run, tmp_path, postgres_url):
    pending = run("doctor", "--store", postgres_url, "--data", tmp_path, "--json")
    wrong = run("doctor", "--set", "server.port=x", "--json")

    [schema] = [record for record in pending.records if record["name"] == "schema"]
    assert (pending.code, schema["grade"]) == (1, "fail")
    assert "penstock migrate" in schema["text"]
    assert (wrong.code, wrong.record["name"]) == (1, "settings")


def test_the_doctor_creates_no_store(run, tmp_path):
    ran = run("doctor", "--data", tmp_path / "nowhere")

    assert ran.code == 0
    assert not (tmp_path / "nowhere").exists()
