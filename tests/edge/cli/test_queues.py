"""`penstock queues`, `stats`, `history` and `tail`"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.edge.api import Api, a_name


def test_a_queue_is_created_with_the_settings_of_the_flags(cli, api: Api):
    name, dead = a_name(), api.make_queue()

    ran = cli(
        *("queues", "create", name, "--lease", "2m", "--delay", "1s", "--retention", "4d"),
        *("--max-attempts", "none", "--dead-letter-queue", dead, "--redelivery", "back"),
        *("--max-crashes", "7"),
        *("--backoff", "list:1s,10s,5m", "--max-body", "1KiB", "--max-messages", "5"),
        *("--dedup-window", "1h", "--wait", "5s", "--label", "team=mail", "--label", "a="),
        *("--dedup-by-content", "yes", "--dedup-scope", "group"),
        *("--max-leased", "9", "--max-leased-per-group", "2", "--rate", "10/1s"),
        *("--rate-per-group", "600/1m,50", "--fair", "yes", "--weight", "acme=3", "--weight", "=2"),
        "--json",
    )

    assert ran.code == 0
    assert ran.record["settings"] == {
        "lease_ms": 120_000,
        "delay_ms": 1_000,
        "retention_ms": 345_600_000,
        "max_attempts": None,
        "dead_letter_queue": dead,
        "ordering": "standard",
        "redelivery": "back",
        "backoff": {"type": "list", "delays_ms": [1_000, 10_000, 300_000]},
        "max_body_bytes": 1_024,
        "max_messages": 5,
        "dedup_window_ms": 3_600_000,
        "dedup_by_content": True,
        "dedup_scope": "group",
        "wait_ms": 5_000,
        "labels": {"team": "mail", "a": ""},
        "annotations": {},
        "max_crashes": 7,
        "max_leased": 9,
        "max_leased_per_group": 2,
        "rate": {"limit": 10, "per_ms": 1_000, "burst": 1},
        "rate_per_group": {"limit": 600, "per_ms": 60_000, "burst": 50},
        "is_fair": True,
        "weights": {"acme": 3, "": 2},
    }
    assert api.queue(name)["settings"] == ran.record["settings"]


@pytest.mark.parametrize(
    ("text", "backoff"),
    [
        ("fixed:10s", {"type": "fixed", "delay_ms": 10_000}),
        (
            "exponential:2s,3,1m,0",
            {
                "type": "exponential",
                "first_ms": 2000,
                "factor": 3.0,
                "max_ms": 60_000,
                "jitter": 0.0,
            },
        ),
        ('{"type": "fixed", "delay_ms": 1}', {"type": "fixed", "delay_ms": 1}),
    ],
)
def test_a_back_off_can_be_written_in_short(cli, api: Api, text, backoff):
    name = api.make_queue()

    cli("queues", "set", name, "--backoff", text)

    assert api.queue(name)["settings"]["backoff"] == backoff


@pytest.mark.parametrize(
    "text", ["fixed", "fixed:soon", "list:", "exponential:1,2,3,4,5", "{", "x:1", "exponential:a,b"]
)
def test_an_invalid_back_off_is_a_usage_error(cli, text):
    assert cli("queues", "set", "any", "--backoff", text).code == 2


def test_creating_an_existing_queue_is_refused_without_replace(cli, api: Api):
    name = api.make_queue(lease_ms=5_000)

    refused = cli("queues", "create", name)

    assert (refused.code, refused.err.rpartition(" ")[2]) == (1, "(queue_exists)\n")
    assert api.queue(name)["settings"]["lease_ms"] == 5_000
    assert cli("queues", "create", name, "--replace").code == 0
    assert api.queue(name)["settings"]["lease_ms"] == 30_000


def test_only_the_given_settings_are_changed(cli, api: Api):
    name = api.make_queue(lease_ms=5_000, max_attempts=9)

    cli("queues", "set", name, "--max-attempts", "2")

    settings = api.queue(name)["settings"]
    assert (settings["lease_ms"], settings["max_attempts"]) == (5_000, 2)
    assert cli("queues", "set", name).code == 2


def test_labels_are_replaced_as_a_whole_and_removed(cli, api: Api):
    name = api.make_queue(labels={"team": "mail"}, wait_ms=5)

    cli("queues", "set", name, "--label", "a=1", "--label", "b=x=y", "--wait", "none")
    settings = api.queue(name)["settings"]
    assert (settings["labels"], settings["wait_ms"]) == ({"a": "1", "b": "x=y"}, None)

    cli("queues", "set", name, "--label", "none")
    assert api.queue(name)["settings"]["labels"] == {}
    assert cli("queues", "set", name, "--label", "team").code == 2


def test_queues_are_listed_with_their_counts(cli, api: Api):
    name = api.make_queue("listed")
    api.send(name)
    api.send(name, delay_ms=1_000)

    ran = cli("queues", "--prefix", name, "--json")

    assert ran.record["counts"] == {"waiting": 1, "ready": 1, "leased": 0, "dead": 0}
    assert name in cli("queues", "--prefix", "listed").out


def test_a_long_list_of_queues_is_complete(cli, api: Api):
    start = a_name("many") + "."
    for number in range(130):
        api.call("PUT", f"/v1/queues/{start}{number:03}", {})

    names = [queue["name"] for queue in cli("queues", "--prefix", start, "--json").records]

    assert names == [f"{start}{number:03}" for number in range(130)]


def test_a_queue_is_shown_paused_and_resumed(cli, api: Api):
    name = api.make_queue()

    assert cli("queues", "pause", name).out == f"{name} is paused\n"
    assert cli("queues", "show", name, "--json").record["is_paused"] is True
    assert cli("queues", "resume", name, "--json").record["is_paused"] is False
    assert "lease_ms" in cli("queues", "show", name).out


def test_a_queue_is_purged_and_deleted(cli, api: Api):
    name = api.make_queue()
    api.send(name)
    api.send(name)

    assert cli("queues", "delete", name).code == 1
    assert cli("queues", "purge", name).out == "2 cancelled\n"
    assert cli("queues", "delete", name, "--json").record == {"removed": name}
    assert cli("queues", "delete", name).err.endswith("(queue_not_found)\n")


def test_dead_messages_are_redriven(cli, api: Api):
    name = api.make_queue()
    for _ in range(3):
        api.die(name)

    assert cli("queues", "redrive", name, "--limit", "2").out == "2 redriven\n"
    assert api.counts(name) == {"ready": 2, "dead": 1}


def test_stats_are_of_the_server_or_of_one_queue(cli, api: Api, server):
    name = api.make_queue()
    api.send(name)

    assert cli("stats", "--json").record["backend"] == server.backend
    assert cli("stats", name, "--json").record["counts"]["ready"] == 1
    assert server.backend in cli("stats").out


def test_history_is_filtered_and_newest_first(cli, api: Api, clock):
    name = api.make_queue()
    old = api.finish(name, kind="k", tags=["t"], entity_id="e")
    clock.advance(hours=2)
    new = api.finish(name)
    dead = api.die(name)

    def ids(*flags):
        return [r["id"] for r in cli("history", "--queue", name, *flags, "--json").records]

    assert ids() == [dead, new, old]
    assert ids("--outcome", "dead") == [dead]
    assert ids("--kind", "k", "--tag", "t", "--entity-id", "e") == [old]
    assert ids("--since", "1h") == [dead, new]
    assert ids("--limit", "1") == [dead]
    assert dead in cli("history", "--queue", name).out


def test_history_within_a_window_leaves_out_its_end(cli, api: Api):
    name = api.make_queue()
    api.finish(name)
    finished = api.get("/v1/history", queue=name)["endings"][0]["finished_at"]

    assert len(cli("history", "--queue", name, "--from", finished, "--json").records) == 1
    assert cli("history", "--queue", name, "--to", finished, "--json").records == []


def test_more_history_than_a_page_is_read_to_the_end(cli, api: Api):
    name = api.make_queue()
    for _ in range(3):
        api.send_many(name, range(250))
    cli("queues", "purge", name)

    ran = cli("history", "--queue", name, "--limit", "1000", "--json")

    assert len({record["id"] for record in ran.records}) == 750


def test_tail_shows_past_endings_and_the_counts(cli, api: Api):
    name = api.make_queue()
    ids = [api.finish(name) for _ in range(3)]
    api.send(name)

    ran = cli("tail", name, "--once", "-n", "2", "--json")

    *endings, counts = ran.records
    assert [e["ending"]["id"] for e in endings] == ids[1:]
    assert counts == {"counts": {"waiting": 0, "ready": 1, "leased": 0, "dead": 0}}
    assert cli("tail", "--all", "--once").code == 0


@pytest.mark.parametrize("flags", [(), ("some", "--all")])
def test_tail_needs_one_queue_or_all(cli, flags):
    assert cli("tail", *flags, "--once").code == 2


def test_limits_are_removed_with_none(cli, api: Api):
    name = api.make_queue(max_leased=1, rate={"limit": 1}, weights={"a": 2}, is_fair=True)

    cli("queues", "set", name, "--max-leased", "none", "--rate", "none", "--weight", "none")

    settings = api.queue(name)["settings"]
    assert (settings["max_leased"], settings["rate"], settings["weights"]) == (None, None, {})
    assert settings["is_fair"]


@pytest.mark.parametrize(
    "flags",
    ["--rate 10", "--rate x/1s", "--rate 1/1s,x", "--weight a=b", "--weight a"],
)
def test_an_invalid_rate_or_weight_is_a_usage_error(cli, api: Api, flags):
    assert cli("queues", "set", api.make_queue(), *flags.split()).code == 2


def test_queues_are_filtered_and_sorted_by_the_server(cli, api: Api):
    start = a_name("filtered") + "."
    for name, sent, team in (("a", 1, "mail"), ("b", 3, "mail"), ("c", 0, "shop")):
        api.call("PUT", f"/v1/queues/{start}{name}", {"labels": {"team": team}})
        for _ in range(sent):
            api.send(start + name)
    cli("queues", "pause", f"{start}a")

    def found(*flags: str) -> list[str]:
        records = cli("queues", "--prefix", start, *flags, "--json").records
        return [queue["name"].removeprefix(start) for queue in records]

    assert found("--label", "team=mail", "--sort", "ready") == ["b", "a"]
    assert found("--sort", "ready", "--ascending") == ["c", "a", "b"]
    assert found("--state", "ready") == ["a", "b"]
    assert found("--problem", "paused") == ["a"]
    assert cli("queues", "--problem", "pausd").code == 2


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y", 0, 0), ("n", 1, 2), ("", 1, 2), ("--yes", 0, 0)]
)
def test_a_purge_asks_on_a_terminal(api: Api, server, answer, code, left):
    name = api.make_queue()
    api.send(name)
    api.send(name)
    flags = [answer] if answer == "--yes" else []

    ended, shown = on_a_terminal(server, answer, "queues", "purge", name, *flags)

    assert ended == code, shown
    assert ("Cancel 2 messages" in shown) is not bool(flags)
    assert ("nothing was changed" in shown) is (code == 1)
    assert api.counts(name).get("ready", 0) == left


def test_deleting_a_queue_by_force_asks_on_a_terminal(api: Api, server):
    name = api.make_queue()
    api.send(name)

    refused, shown = on_a_terminal(server, "n", "queues", "delete", name, "--force")

    assert (refused, "Cancel 1 messages and delete" in shown) == (1, True), shown
    assert on_a_terminal(server, "y", "queues", "delete", name, "--force")[0] == 0


def test_acting_on_many_messages_asks_on_a_terminal(api: Api, server):
    name = api.make_queue()
    api.send(name)
    words = ("messages", "bulk", name, "cancel", "--state", "ready")

    assert on_a_terminal(server, "n", *words)[0] == 1
    assert api.counts(name).get("ready", 0) == 1
    assert on_a_terminal(server, "", *words, "--yes")[0] == 0
    assert api.counts(name).get("ready", 0) == 0


def test_a_dry_run_counts_and_changes_nothing(cli, api: Api):
    name = api.make_queue()
    api.send(name)

    assert cli("queues", "purge", name, "--dry-run").out == "would cancel 1\n"
    assert cli("queues", "delete", name, "--dry-run").err.endswith("(queue_not_empty)\n")
    deletion = cli("queues", "delete", name, "--force", "--dry-run", "--json").record
    assert deletion == {"would_remove": name, "would_cancel": 1}
    assert cli("queues", "show", name, "--json").record["counts"]["ready"] == 1


def on_a_terminal(server, answer: str, *words: str) -> tuple[int, str]:
    """Run a command whose input and output are a terminal; its exit code, and what it shows."""
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "penstock", *words, "--server", server.url]
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        started = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside)
        os.close(inside)
        screen.write(answer.encode() + b"\n")
        shown = b""
        with suppress(OSError):  # Linux: the terminal is closed
            while part := screen.read(4096):
                shown += part
        return started.wait(60), shown.decode()
