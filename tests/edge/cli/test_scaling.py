"""`penstock scaling`, and `penstock autoscale` within this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain.scaling.fleet_status import DECISION, FleetTrouble, NewFact
from penstock.settings import load
from penstock.settings.load import Flag
from penstock.wiring.broker import open_broker
from tests.clocks import ManualClock
from tests.edge.live import LiveServer
from tests.factories import a_fleet_status

FLEETS = """
[profiles.default]
samples_needed = 1
backlog_goal_s = 1

[fleets.mail]
queue = "mail"
min = 1
replicas = {kind = "external"}
"""


@pytest.fixture
def fleets(tmp_path: Path) -> Path:
    file = tmp_path / "fleets.toml"
    file.write_text(FLEETS)
    return file


@pytest.fixture
def shown(server: LiveServer, clock: ManualClock) -> Iterator[None]:
    trouble = FleetTrouble("source", "source_unavailable", "rabbit does not answer", clock.now())
    decision = {
        "change": 5,
        "wanted": 6,
        "reason": "backlog",
        "recommended": 5,
        "because": "backlog",
        "acted": True,
    }
    statuses = [a_fleet_status("mail", seen_at=clock.now(), troubles=(trouble,))]
    facts = [NewFact(DECISION, "mail", decision)]
    server.broker.scaling.save_tick(statuses, facts, now=clock.now()).result()
    yield
    server.broker.scaling.save_tick([], gone=["mail"], now=clock.now()).result()


# ---- scaling


@pytest.mark.usefixtures("shown")
def test_fleets_are_shown_with_their_last_decision_and_why(cli):
    ran = cli("scaling")

    [line] = [line for line in ran.out.splitlines() if line.startswith("mail")]
    for text in ("100", "1 of 0–10", "6", "backlog", "+5 backlog", "source_unavailable"):
        assert text in line
    assert cli("scaling", "--json").record["decision"]["inputs"]["needed"] == 100


@pytest.mark.usefixtures("shown")
def test_a_fleet_is_shown_with_the_inputs_of_its_decision(cli):
    ran = cli("scaling", "mail")

    assert ran.code == 0
    for text in ("consume_rate=1", "needed=100", "rabbit does not answer", "node-1", "+5 backlog"):
        assert text in ran.out
    fleet, decided = cli("scaling", "mail", "--json", "--limit", 1).records
    assert (fleet["name"], decided["decision"]["change"]) == ("mail", 5)


@pytest.mark.usefixtures("shown")
def test_a_profile_is_overridden_shown_and_reset(cli):
    assert cli("scaling", "set", "mail", "most_up=9", "--json").record["overrides"] == {
        "most_up": 9
    }
    assert cli("scaling", "set", "mail", "--reset", "--json").record["overrides"] == {}
    assert cli("scaling", "set", "mail", "most_up=many").code == 2
    assert cli("scaling", "set", "mail", "max=9").err.endswith("(invalid_request)\n")


def test_without_fleets_a_hint_is_shown(cli):
    ran = cli("scaling")

    assert ran.code == 0
    assert "penstock autoscale" in ran.err


def test_an_unknown_fleet_is_refused(cli):
    ran = cli("scaling", "unknown")

    assert ran.code == 1
    assert ran.err.endswith("(fleet_not_found)\n")


@pytest.mark.parametrize("limit", ["0", "1001", "many"])
def test_an_invalid_limit_is_a_usage_error(cli, limit):
    assert cli("scaling", "mail", "--limit", limit).code == 2


# ---- autoscale


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (None, "fleets_refused", "does not exist"),
        ("[fleets", "fleets_refused", "not valid TOML"),
        (FLEETS.replace("default", "other"), "default_profile_missing", "[profiles.default]"),
        (FLEETS + 'sauce = "rabbit"', "fleets_refused", "did you mean source?"),
        (
            FLEETS.replace("min = 1", 'source = "rabbit"'),
            "source_unknown",
            "unknown source 'rabbit'",
        ),
    ],
)
def test_it_does_not_start_without_a_valid_file(run, fleets, text, code, said):
    if text is None:
        fleets.unlink()
    else:
        fleets.write_text(text)

    ran = run("autoscale", "--fleets", fleets, "--data", "data")

    assert ran.code == 1
    assert said in ran.err
    assert ran.err.endswith(f"({code})\n")
    assert len(ran.err.splitlines()) == 1


def test_it_does_not_start_if_no_file_is_named(run):
    ran = run("autoscale", "--data", "data")

    assert ran.code == 1
    assert "--fleets" in ran.err
    assert ran.err.endswith("(fleets_refused)\n")


def test_once_decides_and_acts_for_every_fleet_and_exits(run, fleets):
    ran = run("autoscale", "--fleets", fleets, "--data", "data", "--once")

    assert ran.code == 0
    [line] = [line for line in ran.out.splitlines() if line.startswith("mail")]
    assert "below_minimum" in line
    assert "queue_unknown" in line  # the queue does not exist yet


def test_a_dry_run_changes_nothing(run, fleets):
    flags = ("--fleets", fleets, "--data", "data", "--json", "--once")
    run("queues")  # flush the output of earlier commands

    first = run("autoscale", *flags, "--dry-run").record
    again = run("autoscale", *flags, "--dry-run").record

    for record in (first, again):
        assert record["is_dry"]
        assert (record["decision"]["change"], record["decision"]["reason"]) == (1, "below_minimum")


def test_the_file_may_come_from_the_settings(run, fleets, monkeypatch):
    monkeypatch.setenv("PENSTOCK_SCALING_FLEETS_FILE", str(fleets))

    assert run("autoscale", "--data", "data", "--once").code == 0


def test_once_is_refused_while_another_autoscaler_leads(run, fleets):
    broker = open_broker(load(env={}, flags={"data": Flag("--data", "data")}).settings)
    broker.scaling.lead("default", holder="another", for_ms=60_000, now=broker.clock.now())
    broker.close()

    ran = run("autoscale", "--fleets", fleets, "--data", "data", "--once")

    assert ran.code == 1
    assert "another autoscaler" in ran.err


def test_a_server_does_not_start_with_an_invalid_file(run, fleets):
    fleets.write_text(FLEETS.replace("default", "other"))

    ran = run("serve", "--data", "data", "--set", f"scaling.fleets_file={fleets}")

    assert ran.code == 1
    assert ran.err.endswith("(default_profile_missing)\n")
