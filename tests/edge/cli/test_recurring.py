"""`penstock recurring`"""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Penstock
from tests.edge.api import Api, a_name


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue()


@pytest.fixture
def name() -> str:
    return a_name("nightly")


def test_recurring_work_is_set_shown_and_listed(cli, queue, name):
    made = cli(
        "recurring", "set", name, queue, '{"a": 1}', "--cron", "30 2 * * *", "--zone",
        "Europe/Berlin", "--kind", "report", "--overlap", "skip", "--catch-up", "all",
        "--attribute", "n=1", "--priority", "3", "--json",
    ).record  # fmt: skip

    assert (made["body"], made["cron"], made["zone"]) == ({"a": 1}, "30 2 * * *", "Europe/Berlin")
    assert (made["overlap"], made["catch_up"], made["priority"]) == ("skip", "all", 3)
    assert cli("recurring", "show", name, "--json").record == made
    assert "30 2 * * * Europe/Berlin" in cli("recurring", "show", name).out
    assert made in cli("recurring", "--json").records
    assert name in cli("recurring").out


def test_the_next_firings_are_shown_in_their_time_zone(cli, queue, name):
    cli("recurring", "set", name, queue, "--cron", "30 2 * * *", "--zone", "Europe/Berlin")

    own = cli("recurring", "preview", name, "--count", "2").out
    tried = cli(
        "recurring", "preview", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--count", "2"
    ).out

    assert own == tried
    assert all(" 02:30:00+0" in line for line in own.splitlines())


def test_it_is_run_paused_resumed_and_removed(cli, api: Api, queue, name):
    cli("recurring", "set", name, queue, "hello", "--every", "1h")

    sent = cli("recurring", "run", name).out.strip()
    assert api.message(sent)["body"] == "hello"
    assert cli("recurring", "pause", name, "--json").record["is_paused"]
    assert not cli("recurring", "resume", name, "--json").record["is_paused"]
    assert cli("recurring", "remove", name).code == 0
    assert cli("recurring", "show", name).code != 0


def test_an_invalid_schedule_is_refused_with_a_reason(cli, queue, name):
    ran = cli("recurring", "set", name, queue, "--cron", "nonsense")

    assert ran.code != 0
    assert "not a cron expression" in ran.err


def test_recurring_work_of_a_store_without_a_server_is_listed_and_removed(run, tmp_path):
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    with Penstock(url, name="shop") as app:
        app.recurring("@daily", zone="Europe/Berlin")(app.job(kind="nightly")(lambda: None))
        app.job_source()

        def recurring(*words: str) -> Any:
            return run("recurring", *words, "--store", url)

        assert "@daily Europe/Berlin" in recurring().out
        assert recurring("show", "nightly", "--json").record["owner"] == "shop"
        assert "yes" in recurring("pause", "nightly").out
        assert recurring("resume", "nightly", "--json").record["is_paused"] is False
        sent = recurring("run", "nightly").out.strip()
        assert app.jobs.get(sent).kind == "nightly"
        assert recurring("remove", "nightly").code == 0
        assert app.recurring.list() == []
        assert "schedule_not_found" in recurring("remove", "nightly").err
