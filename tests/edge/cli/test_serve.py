"""`penstock serve`"""

from __future__ import annotations

from pathlib import Path

from tests.edge.api import Api


def test_an_invalid_setting_prevents_the_start_of_a_server(run):
    ran = run("serve", "--port", "70000", "--data", "data")

    assert ran.code == 1
    assert "server.port (from --port) is '70000'" in ran.err
    assert not Path("data").exists()


def test_a_server_prints_one_line_and_exits_on_a_signal(make_process):
    process = make_process()

    assert Api(process.url).get("/healthz")["status"] == "ok"
    assert process.end() == 0
