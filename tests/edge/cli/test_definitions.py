"""`penstock export` and `penstock apply`, and definitions at the start of a server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock import Penstock
from tests.edge.api import Api

DEFINITIONS = """
queues:
  mail: {lease_ms: 60000, max_attempts: null, dead_letter_queue: mail-dead}
  mail-dead: {}
topics:
  orders:
    audit: {}
    billing: {kinds: ["order.*"], dispatch: sticky, settings: {max_attempts: 7}}
routes:
  "/shop/(.*)": {url: "http://localhost:8080/$1", timeout: 30}
breaker: {error_threshold_percentage: 80}
circuits:
  "/shop/(.*)": {error_threshold_percentage: 50}
recurring:
  nightly: {queue: mail, cron: "30 2 * * *", zone: Europe/Berlin, body: {report: all}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "definitions.yaml"
    path.write_text(DEFINITIONS)
    return path


@pytest.fixture
def own(make_server, run, monkeypatch):
    """The command line with a server that no other test uses."""
    monkeypatch.setenv("PENSTOCK_SERVER", make_server().url)
    return run


def test_a_file_is_applied_and_applying_it_again_changes_nothing(own, file):
    first = own("apply", file, "--json").records
    again = own("apply", file)

    assert [(one["kind"], one["name"]) for one in first] == [
        ("queue", "mail"),
        ("queue", "mail-dead"),
        ("topic", "orders"),
        ("subscription", "orders/audit"),
        ("subscription", "orders/billing"),
        ("routes", ""),
        ("breaker", ""),
        ("circuit", "/shop/(.*)"),
        ("recurring", "nightly"),
    ]
    assert again.out == "to do: 0, unchanged: 9\n"
    settings = own("queues", "show", "mail", "--json").record["settings"]
    assert (settings["lease_ms"], settings["max_attempts"]) == (60_000, None)
    assert own("recurring", "show", "nightly", "--json").record["body"] == {"report": "all"}
    assert own("routes", "--json").record["pattern"] == "/shop/(.*)"


def test_an_export_can_be_applied_elsewhere(own, file, make_server, tmp_path):
    own("apply", file)
    exported = own("export").out
    other = make_server(data=tmp_path / "other").url

    own("apply", "-", "--server", other, stdin=exported)

    assert own("export", "--server", other).out == exported
    as_json = own("export", "--json", "--server", other).out
    assert own("apply", "-", stdin=as_json).out == "to do: 0, unchanged: 8\n"  # without the routes


def test_a_dry_run_shows_the_plan_and_changes_nothing(own, file):
    planned = own("apply", file, "--dry-run")

    assert "+ queue mail\n    lease_ms: 60000\n    max_attempts: null\n" in planned.out
    assert "    error_threshold_percentage: 90 → 80\n" in planned.out
    assert own("queues", "--json").records == []


def test_only_pruning_removes_what_the_file_does_not_have(own, file):
    own("queues", "create", "other")

    kept = own("apply", file)
    assert "not in the file, and kept (--prune removes them): queue other" in kept.out
    own("apply", file, "--prune")

    assert {one["name"] for one in own("queues", "--json").records} == {
        "mail",
        "mail-dead",
        "orders.audit",
        "orders.billing",
    }


def test_pruning_never_removes_messages(own, file):
    own("queues", "create", "other")
    own("send", "other", "keep me")

    refused = own("apply", file, "--prune")

    assert refused.code == 1
    assert "queue_not_empty" in refused.err


def test_recurring_work_of_an_application_is_left_to_its_code(own, file, monkeypatch):
    with Penstock(os.environ["PENSTOCK_SERVER"], name="shop") as app:

        @app.recurring(every="1h")
        @app.job
        def tidy() -> None: ...

        app.job_source()
    assert [one["owner"] for one in own("recurring", "--json").records] == ["shop"]

    own("apply", file, "--prune")

    assert len(own("recurring", "--json").records) == 2
    assert "tidy" not in own("export").out


def test_rules_with_secrets_are_put_again_because_they_cannot_be_compared(own, tmp_path):
    file = tmp_path / "routes.yaml"
    file.write_text(
        "routes: {'/a': {url: 'http://localhost:1/', basicAuth: {username: a, password: b}}}"
    )
    own("apply", file)

    again = own("apply", file)

    assert "~ routes" in again.out


def test_a_store_without_a_server_takes_definitions_too(run, file, tmp_path):
    store = ["--store", f"sqlite:///{tmp_path}/jobs.db"]
    assert run("migrate", *store).code == 0

    assert run("apply", file, *store).code == 0

    assert "lease_ms: 60000" in run("export", *store).out


def test_a_server_applies_its_definitions_before_it_accepts_connections(make_process, file):
    process = make_process(server_definitions=file)

    assert Api(process.url).queue("mail")["settings"]["lease_ms"] == 60_000
    assert process.end() == 0


def test_wrong_definitions_prevent_the_start_of_a_server(run, tmp_path):
    (tmp_path / "wrong.yaml").write_text("queues: {mail: {lease_ms: -1}}")

    ran = run("serve", "--definitions", "wrong.yaml", "--data", "data", "--port", "0")

    assert ran.code == 1
    assert "lease_ms" in ran.err
