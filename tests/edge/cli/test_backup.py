"""`penstock backup`"""

from __future__ import annotations

import re
from pathlib import Path

import apsw

from tests.edge.api import Api
from tests.edge.live import LiveServer


def test_a_backup_of_a_running_server_has_every_acknowledged_message(run, make_server, tmp_path):
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


def test_a_backup_replaces_a_file_only_with_force(run, tmp_path):
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


def test_a_backup_of_postgresql_is_refused_with_a_hint_at_pg_dump(run):
    ran = run("backup", "x.db", "--store", "postgresql://db/x")

    assert ran.code == 1
    assert "pg_dump" in ran.err
