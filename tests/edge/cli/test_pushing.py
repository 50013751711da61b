"""`penstock routes` and `penstock circuits`"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from tests.edge.api import Api

URL = "http://127.0.0.1:9"
RULES = {
    "/shop/(.*)": {"url": f"{URL}/$1", "methods": ["PUT", "POST"], "timeout": 90},
    "/.*": {"url": URL, "concurrency": 7},
}
SHOP = circuit_hash("/shop/(.*)")


@pytest.fixture(autouse=True)
def _fresh(api: Api) -> Iterator[None]:
    yield
    api.call("DELETE", "/admin/v1/routing/rules")
    api.call("DELETE", "/v1/breaker")


@pytest.fixture
def rules(cli, tmp_path: Path) -> Path:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(RULES))
    assert cli("routes", "set", file).code == 0
    return file


def test_routes_are_replaced_by_those_of_a_file(cli, rules):
    ran = cli("routes")

    assert ran.code == 0
    first, second = [line for line in ran.out.splitlines() if URL in line]
    for text in ("/shop/(.*)", f"{URL}/$1", "POST PUT", "90s", SHOP):
        assert text in first
    assert second.startswith("/.*")
    records = cli("routes", "--json").records
    assert [record["pattern"] for record in records] == list(RULES)
    assert records[1]["concurrency"] == 7


def test_routes_are_also_read_from_standard_input(cli):
    ran = cli("routes", "set", "-", "--json", stdin='{"/a": {"url": "http://a"}}\n')

    assert [record["pattern"] for record in ran.records] == ["/a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a JSON object of patterns and rules"),
        ("[]", "is not a JSON object of patterns and rules"),
        ('{"/a(": {"url": "http://a"}}', "rule '/a('"),
    ],
)
def test_an_invalid_file_changes_nothing(cli, rules, text, said):
    ran = cli("routes", "set", "-", stdin=text)

    assert ran.code != 0
    assert said in ran.err
    assert len(cli("routes", "--json").records) == 2
    assert "cannot read" in cli("routes", "set", "nowhere.json").err


def test_the_route_of_a_delivery_is_shown(cli, rules):
    ran = cli("routes", "match", "/shop/a?b=1")

    assert ran.code == 0
    assert f"{URL}/a?b=1" in ran.out
    assert "/shop/(.*)" in ran.out
    assert cli("routes", "match", "/x", "--json").record["route"]["pattern"] == "/.*"
    assert cli("routes", "match", "nothing").err.endswith("(route_not_found)\n")


def test_a_circuit_is_opened_shown_and_closed(cli, rules):
    opened = cli("circuits", "open", SHOP, "--json").record
    assert (opened["state"], opened["is_forced"]) == ("open", True)

    [line] = [line for line in cli("circuits").out.splitlines() if SHOP in line]
    assert "open" in line
    assert "/shop/(.*)" in line
    assert "forced" in cli("circuits", "show", SHOP).out
    assert cli("circuits", "close", SHOP, "--json").record["state"] == "closed"
    assert cli("circuits", "show", "none").err.endswith("(circuit_not_found)\n")


def test_all_circuits_are_closed_only_with_the_flag(cli, rules):
    cli("circuits", "open", SHOP)

    assert cli("circuits", "close").code == 2
    assert cli("circuits", "close", SHOP, "--all").code == 2
    assert cli("circuits", "close", "--all").out == "1 closed\n"
    assert cli("circuits", "close", "--all", "--json").record == {"closed": 0}


def test_the_settings_of_the_breaker_are_shown_and_set(cli):
    ran = cli(
        "circuits",
        "set",
        "single_probe=true",
        "open_to_half_open.enabled=true",
        "open_to_half_open.interval_ms=5000",
        "slow_call_ms=250",
    )

    assert ran.code == 0
    shown = dict(line.split(maxsplit=1) for line in cli("circuits", "settings").out.splitlines())
    assert (shown["single_probe"], shown["slow_call_ms"]) == ("yes", "250")
    assert shown["open_to_half_open.enabled"] == "yes"
    assert shown["open_to_half_open.interval_ms"] == "5000"

    again = cli("circuits", "set", "--reset", "unlock_growth=2", "--json").record
    assert (again["single_probe"], again["unlock_growth"]) == (False, 2)
    assert "nothing" in cli("circuits", "set", "nothing=1").err
    assert cli("circuits", "set", "single_probe").code == 2


def test_the_settings_of_one_circuit_are_shown_and_set(cli, rules):
    def fields(*words: str) -> dict[str, str]:
        lines = filter(None, cli("circuits", *words).out.splitlines())
        return {name: value.strip() for name, _, value in (line.partition("  ") for line in lines)}

    one = fields("set", "--circuit", SHOP, "error_threshold_percentage=50", "slow_call_ms=null")
    assert one["error_threshold_percentage"] == "50  (override)"
    assert one["route"] == "/shop/(.*)"
    assert fields("settings", SHOP)["min_queue_sample_count"] == "100"

    jobs = cli("circuits", "set", "--route", "stripe", "single_probe=true", "--json").record
    assert jobs["overrides"] == {"single_probe": True}
    assert cli("circuits", "settings", "--route", "stripe", "--json").record == jobs
    listed = cli("circuits", "settings").out
    assert "error_threshold_percentage=50 slow_call_ms=none" in listed
    assert "single_probe=yes" in listed

    again = cli("circuits", "set", "--route", "stripe", "--reset", "min_open_ms=9", "--json").record
    assert again["overrides"] == {"min_open_ms": 9}
    for which in (("--circuit", SHOP), ("--route", "stripe")):
        assert cli("circuits", "set", *which, "--reset", "--json").record["overrides"] == {}
    assert "stripe" not in cli("circuits", "settings").out


def test_a_circuit_is_named_once_and_has_no_tasks_of_its_own(cli, rules):
    assert cli("circuits", "settings", SHOP, "--route", "stripe").code == 2
    assert (
        cli("circuits", "set", "--circuit", SHOP, "--route", "stripe", "slow_call_ms=1").code == 2
    )
    ran = cli("circuits", "set", "--circuit", SHOP, "unlock_queues.enabled=true")
    assert "unlock_queues: the same for all circuits" in ran.err
    assert cli("circuits", "settings", "0" * 32).err.endswith("(circuit_not_found)\n")


def test_a_queue_that_a_circuit_holds_is_shown_as_held(cli, api, server):
    queue = api.make_queue()
    view = server.broker.queues.get(queue).result()
    server.broker.store.write(lambda s: s.queues.hold([view.queue.queue_no], by=SHOP)).result()

    assert api.queue(queue)["held_by"] == SHOP
    shown = cli("queues", "show", queue).out
    assert SHOP in shown
    [line] = [one for one in cli("queues").out.splitlines() if one.startswith(queue)]
    assert "held" in line
    assert cli("queues", "show", queue, "--json").record["held_by"] == SHOP


def test_held_queues_are_unheld_one_by_one_by_circuit_or_all(cli, api, server):
    cli("circuits", "unhold", "--all")  # leftovers of other tests
    names = sorted(api.make_queue() for _ in range(3))
    numbers = [server.broker.queues.get(name).result().queue.queue_no for name in names]
    server.broker.store.write(lambda s: s.queues.hold(numbers, by=SHOP)).result()

    resumed = cli("queues", "resume", names[0])
    assert resumed.out == (
        f"{names[0]} is not paused\n"
        f"circuit {SHOP} holds it; release it: penstock queues unhold {names[0]}\n"
    )
    assert "unhold" in cli("queues", "resume", names[0], "--json").record["note"]
    assert cli("queues", "unhold", names[0]).out == f"{names[0]} is not paused\n"
    assert cli("queues", "unhold", names[0], "--json").record["held_by"] is None

    assert cli("circuits", "unhold").code == 2
    assert cli("circuits", "unhold", SHOP, "--all").code == 2
    assert cli("circuits", "unhold", SHOP).out == "2 unheld\n"
    server.broker.store.write(lambda s: s.queues.hold(numbers, by=SHOP)).result()
    assert cli("circuits", "unhold", "--all", "--json").record == {"unheld": 3}
