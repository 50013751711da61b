"""Commands on the store itself: migrate, keys, backup, doctor, settings, serve."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from penstock.domain.access.api_key import matches
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.message.draft import Draft
from penstock.domain.queue import problem
from penstock.domain.queue.queue import QueueSettings
from penstock.services.circuits.circuits import PermitRequest
from penstock.settings import Settings
from penstock.settings.values import StoreSettings
from penstock.store.meta_names import HIGH_WATER
from penstock.wiring.broker import open_broker
from tests.clocks import ManualClock
from tests.edge.api import Api
from tests.edge.live import LiveServer

STORES = pytest.mark.parametrize("backend", ["sqlite", "postgres"])


@pytest.fixture
def where(request: pytest.FixtureRequest, backend: str, tmp_path: Path) -> list[str]:
    """The flags that name a store of this backend, empty."""
    if backend == "postgres":
        return ["--store", request.getfixturevalue("postgres_url"), "--data", str(tmp_path)]
    return ["--data", str(tmp_path / "data")]


@STORES
def test_a_store_is_migrated_once(run, where):
    pending = run("migrate", *where, "--sql").out
    first = run("migrate", *where, "--json").record["applied"]

    assert "CREATE TABLE" in pending
    assert all(name in pending for name in first) or "COMMIT" in pending
    assert first
    assert run("migrate", *where, "--json").record["applied"] == []
    assert run("migrate", *where).out == "the schema is up to date\n"
    assert run("migrate", *where, "--sql").out == ""


@STORES
def test_a_key_is_made_listed_and_revoked(run, where):
    run("migrate", *where)

    made = run("keys", "create", "--name", "shop", "--role", "produce", "--queues", "m.*", *where)
    listed = run("keys", *where, "--json").record

    assert re.fullmatch(r"pk_[0-9a-f]+_[0-9a-f]{40}\n", made.out)
    assert "not shown again" in made.err
    assert listed["id"] == made.out.split("_")[1]
    assert (listed["name"], listed["roles"], listed["queues"]) == ("shop", ["produce"], ["m.*"])
    assert listed["revoked_at"] is None
    assert run("keys", "revoke", listed["id"], *where).code == 0
    assert run("keys", *where, "--json").record["revoked_at"]
    assert run("keys", "revoke", listed["id"], *where).err.endswith("(not_found)\n")


def test_a_key_has_what_aws_tools_sign_with_as_long_as_it_is_in_use(run, tmp_path):
    where = ("--data", tmp_path)
    flags = ("--name", "shop", "--role", "produce")
    made = run("keys", "create", *flags, *where, "--json").record

    shown = run("keys", "aws", made["id"], *where)

    assert shown.out.splitlines() == [
        f"AWS_ACCESS_KEY_ID={made['id']}",
        f"AWS_SECRET_ACCESS_KEY={made['aws_secret_access_key']}",
    ]
    assert made["aws_secret_access_key"] not in made["secret"]
    run("keys", "revoke", made["id"], *where)
    assert run("keys", "aws", made["id"], *where).err.endswith("(not_found)\n")


def test_only_a_hash_of_the_secret_is_stored(run, tmp_path):
    where = ("--data", tmp_path / "data")

    secret = run("keys", "create", "--name", "a", "--role", "read", *where, "--json").record[
        "secret"
    ]

    broker = open_broker(Settings(data=str(tmp_path / "data")))
    [key] = broker.keys.all().result()
    broker.close()
    files = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert matches(key, secret)
    assert secret.encode() not in files
    assert secret.split("_")[2].encode() not in files


@pytest.mark.parametrize("flags", [["--role", "king"], []])
def test_a_key_needs_roles_that_exist(run, tmp_path, flags):
    assert run("keys", "create", "--name", "a", *flags, "--data", tmp_path).code == 2


def test_a_backup_of_a_working_server_holds_what_was_acknowledged(run, make_server, tmp_path):
    server: LiveServer = make_server()
    api = Api(server.url)
    queue = api.make_queue()
    sent = {api.send(queue, "x" * 1000) for _ in range(200)}

    ran = run("backup", tmp_path / "copy" / "penstock.db", "--data", server.data)
    assert ran.code == 1, "there is no such folder"
    (tmp_path / "copy").mkdir()
    ran = run("backup", tmp_path / "copy" / "penstock.db", "--data", server.data, "--json")

    assert ran.code == 0
    assert Path(ran.record["path"]).stat().st_size == ran.record["size"]
    restored = Api(make_server(data=tmp_path / "copy").url)
    assert {m["id"] for m in restored.claim(queue, limit=1000)} == sent
    restored.close()
    api.close()


def test_a_backup_replaces_a_file_only_when_told_to(run, tmp_path):
    run("migrate", "--data", tmp_path / "data")
    target = tmp_path / "copy.db"
    target.write_text("precious")

    refused = run("backup", target, "--data", tmp_path / "data")

    assert refused.code == 1
    assert target.read_text() == "precious"
    assert run("backup", target, "--data", tmp_path / "data", "--force").code == 0
    assert apsw.Connection(str(target)).pragma("integrity_check") == "ok"


def test_a_backup_into_a_folder_gets_a_name_with_the_time(run, tmp_path):
    run("migrate", "--data", tmp_path / "data")
    (tmp_path / "copies").mkdir()

    ran = run("backup", tmp_path / "copies", "--data", tmp_path / "data", "--json")

    [copy] = (tmp_path / "copies").iterdir()
    assert re.fullmatch(r"penstock-\d{8}T\d{6}Z\.db", copy.name)
    assert ran.record["path"] == str(copy)


def test_backups_of_postgresql_are_for_its_own_tools(run):
    ran = run("backup", "x.db", "--store", "postgresql://db/x")

    assert ran.code == 1
    assert "pg_dump" in ran.err


def test_only_a_sqlite_store_that_is_there_can_be_promoted(run, tmp_path):
    missing = run("promote", "--to", "postgresql://db/x", "--data", tmp_path / "nowhere")
    moved = run("promote", "--to", "postgresql://db/x", "--store", "postgresql://db/y")

    assert (missing.code, moved.code) == (1, 1)
    assert "there is no store" in missing.err
    assert "PostgreSQL already" in moved.err
    assert run("promote", "--data", tmp_path).code == 2
    assert not (tmp_path / "nowhere").exists()


def test_the_doctor_tells_what_postgresql_is_set_to(run, postgres_url, tmp_path):
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


def test_the_doctor_says_when_transactions_of_others_are_hidden(run, postgres_url, tmp_path):
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
def test_the_doctor_finds_nothing_wrong_with_a_good_store(run, where, backend):
    run("migrate", *where)
    run("keys", "create", "--name", "a", "--role", "read", *where)

    ran = run("doctor", *where, "--json")

    grades = {record["name"]: record["grade"] for record in ran.records}
    assert ran.code == 0
    assert grades.pop("server") == "warn", "none runs, and none was named"
    grades.pop("file system"), grades.pop("disk sync"), grades.pop("disk space")
    assert set(grades.values()) == {"ok"}
    expected = {"sqlite": {"journal", "integrity", "checksums"}, "postgres": {"fsync"}}
    always = {"settings", "python", "schema", "clock", "books", "limits", "holds"}
    assert always | expected[backend] <= set(grades)
    assert run("doctor", *where).out.count("\n") == len(ran.records)


def test_the_doctor_asks_the_server_that_is_named(run, make_server):
    server: LiveServer = make_server()

    good = run("doctor", "--data", server.data, "--server", server.url, "--json")
    server.stop()
    bad = run("doctor", "--data", server.data, "--server", server.url, "--json")

    assert (good.code, bad.code) == (0, 1)
    assert [good.records[-1]["grade"], bad.records[-1]["grade"]] == ["ok", "fail"]


@STORES
def test_the_doctor_tells_why_queues_are_held(run, where, backend):
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


def test_the_doctor_sees_a_damaged_file(run, tmp_path):
    run("migrate", "--data", tmp_path)
    with (tmp_path / "penstock.db").open("r+b") as file:
        file.seek(3 * 4096 + 100)
        file.write(b"damage")

    assert run("doctor", "--data", tmp_path).code == 1


def test_the_doctor_sees_books_that_do_not_balance(run, tmp_path):
    broker = open_broker(Settings(data=str(tmp_path)))
    broker.queues.put("mail", QueueSettings()).result()
    broker.store.write(_count_what_is_not_there).result()
    broker.close()

    ran = run("doctor", "--data", tmp_path, "--json")

    wrong = [record["text"] for record in ran.records if record["grade"] == "fail"]
    assert ran.code == 1
    assert any(
        "mail: the counter of ready messages is 5, but there are 0" in text for text in wrong
    )


def _count_what_is_not_there(session: Any) -> None:
    session.transaction.count(1).ready += 5


def test_the_doctor_sees_who_is_held_back_without_a_reason(run, tmp_path):
    broker = open_broker(Settings(data=str(tmp_path)))
    limited = QueueSettings(max_leased_per_group=1)
    queue = broker.queues.put("mail", limited).result().view.queue
    drafts = [broker.messages.draft(queue, Draft(body="1", group="a")) for _ in range(3)]
    broker.messages.send(drafts).result()
    broker.store.write(_hold_everybody_back).result()
    broker.close()

    ran = run("doctor", "--data", tmp_path, "--json")

    wrong = [record["text"] for record in ran.records if record["grade"] == "fail"]
    assert ran.code == 1
    assert wrong == ["mail, group 'a': 3 are held back, but the limit has room for 1"]


def _hold_everybody_back(session: Any) -> None:
    session.db.run("group_limits.hold_back_all", {"queue_no": 1})


def _be_ahead(session: Any) -> None:
    session.db.run("meta.set", {"name": HIGH_WATER, "value": str(2_999_999_999_999)})


def _write_to(where: list[str], backend: str, what: Any) -> None:
    url = where[1] if backend == "postgres" else f"sqlite:///{where[1]}/penstock.db"
    broker = open_broker(Settings(store=StoreSettings(url=url)), clock=ManualClock())
    broker.store.write(what).result()
    broker.close()


@STORES
def test_the_doctor_names_how_far_the_store_is_ahead_and_repairs_it(run, where, backend):
    run("migrate", *where)
    _write_to(where, backend, _be_ahead)

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


def test_the_doctor_does_not_repair_the_clock_of_a_store_that_is_in_use(run, tmp_path):
    where = ["--data", str(tmp_path / "data")]
    run("migrate", *where)
    url = f"sqlite:///{where[1]}/penstock.db"
    broker = open_broker(Settings(store=StoreSettings(url=url)), clock=ManualClock())
    broker.store.write(_be_ahead).result()

    refused = run("doctor", *where, "--json", "--repair-clock")
    broker.close()

    records = {record["name"]: record for record in refused.records}
    assert (refused.code, records["repair-clock"]["grade"]) == (1, "fail")
    assert "a process has the store open" in records["repair-clock"]["text"]
    assert records["clock"]["grade"] == "warn", "as it was"
    missing = run("doctor", "--data", tmp_path / "nowhere", "--json", "--repair-clock")
    assert missing.code == 1
    assert not (tmp_path / "nowhere").exists()


def test_the_doctor_sees_pending_migrations_and_wrong_settings(run, tmp_path, postgres_url):
    pending = run("doctor", "--store", postgres_url, "--data", tmp_path, "--json")
    wrong = run("doctor", "--set", "server.port=x", "--json")

    [schema] = [record for record in pending.records if record["name"] == "schema"]
    assert (pending.code, schema["grade"]) == (1, "fail")
    assert "penstock migrate" in schema["text"]
    assert (wrong.code, wrong.record["name"]) == (1, "settings")


def test_the_doctor_makes_nothing_where_nothing_is(run, tmp_path):
    ran = run("doctor", "--data", tmp_path / "nowhere")

    assert ran.code == 0
    assert not (tmp_path / "nowhere").exists()


def test_settings_are_shown_with_where_they_came_from(run, monkeypatch):
    Path("penstock.toml").write_text("[history]\nretention_days = 30\n")
    monkeypatch.setenv("PENSTOCK_SERVER_PORT", "8000")

    records = {r["key"]: r for r in run("settings", "--set", "data=/srv", "--json").records}

    assert (records["data"]["value"], records["data"]["source"]) == ("/srv", "--set")
    assert (records["server.port"]["value"], records["server.port"]["place"]) == (8000, "env")
    assert records["history.retention_days"]["source"] == "penstock.toml"
    assert records["log.level"]["place"] == "default"
    assert "PENSTOCK_SERVER_PORT" in run("settings").out


def test_a_password_is_not_shown(run):
    for url in ("postgresql://me:s3cret@db/x", "postgresql://db/x?user=me&password=s3cret&a=b"):
        assert "s3cret" not in run("settings", "--store", url).out
        assert "s3cret" not in run("settings", "--store", url, "--json").out


def test_the_template_of_a_config_file_is_one(run):
    Path("penstock.toml").write_text(run("settings", "--toml").out)

    assert run("settings").code == 0


def test_a_wrong_setting_stops_the_server_before_it_starts(run):
    ran = run("serve", "--port", "70000", "--data", "data")

    assert ran.code == 1
    assert "server.port (from --port) is '70000'" in ran.err
    assert not Path("data").exists()


def test_a_served_process_prints_one_line_and_leaves_on_a_signal(make_process):
    process = make_process()

    assert Api(process.url).get("/healthz")["status"] == "ok"
    assert process.end() == 0
