"""send, receive and the acts on leases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.edge.api import Api, ok


def test_a_message_goes_through_the_command_line_and_back(cli, api: Api):
    queue = api.make_queue()

    sent = cli("send", queue, '{"to": "ada"}', "--kind", "welcome", "--tag", "a", "--tag", "b")
    claimed = cli("claim", queue, "--json").record
    done = cli("complete", claimed["receipt"])

    assert sent.code == 0
    assert claimed["id"] == sent.out.strip()
    assert claimed["body"] == {"to": "ada"}
    assert (claimed["kind"], claimed["tags"], claimed["state"]) == ("welcome", ["a", "b"], "leased")
    assert done == (0, f"{claimed['id']} done\n", "")
    assert api.message(claimed["id"])["state"] == "done"


def test_every_flag_of_a_send_reaches_the_message(cli, api: Api):
    queue = api.make_queue()

    sent = cli(
        *("send", queue, "x", "--entity-id", "e", "--group", "g", "--priority", "-3"),
        *("--due-at", "2031-01-01T10:00+01:00", "--dedup-key", "d", "--expires-in", "3660d"),
        *("--max-attempts", "2", "--trace", "t", "--attribute", "a=b=c", "--attribute", "n=1"),
        *("--attempt-timeout", "90s", "--retry-timeouts", "--unique-until", "ended"),
        *("--route", "eu", "--json"),
    ).record

    message = api.message(sent["id"])
    assert sent["is_duplicate"] is False
    assert (message["entity_id"], message["group"], message["priority"]) == ("e", "g", -3)
    assert message["due_at"] == "2031-01-01T09:00:00.000Z"
    assert (message["dedup_key"], message["max_attempts"], message["trace"]) == ("d", 2, "t")
    assert message["attributes"] == {"a": "b=c", "n": "1"}
    assert (message["timeout_ms"], message["retries_timeouts"]) == (90_000, True)
    assert (message["dedup_until"], message["route"]) == ("ended", "eu")


def test_a_second_send_with_the_same_key_says_that_it_is_a_duplicate(cli, api: Api):
    queue = api.make_queue()
    first = cli("send", queue, "x", "--dedup-key", "k").out.strip()

    assert cli("send", queue, "x", "--dedup-key", "k").out.strip() == f"{first} (duplicate)"


@pytest.mark.parametrize(
    ("text", "flags", "body"),
    [
        ("12", (), 12),
        ("12", ("--text",), "12"),
        ("hello", (), "hello"),
        ("{broken", (), "{broken"),
        ("null", (), None),
        ('"quoted"', ("--json-body",), "quoted"),
    ],
)
def test_a_body_is_json_if_it_can_be(cli, api: Api, text, flags, body):
    queue = api.make_queue()

    cli("send", queue, text, *flags)

    assert api.claim_one(queue)["body"] == body


def test_numbers_of_any_length_are_sent_as_they_were_written(cli, api: Api):
    queue = api.make_queue()

    cli("send", queue, "[123456789012345678901234567890, 1.10]")

    claimed = api.call("POST", f"/v1/queues/{queue}/claims", {}).text
    assert "[123456789012345678901234567890, 1.10]" in claimed


def test_invalid_json_is_refused_with_json_body(cli, api: Api):
    ran = cli("send", api.make_queue(), "{broken", "--json-body")

    assert ran.code == 1
    assert ran.err.startswith("penstock: the body is not JSON")


def test_a_body_may_come_from_standard_input_or_a_file(cli, api: Api):
    queue = api.make_queue()
    Path("body.txt").write_text("from a file\n")

    cli("send", queue, stdin="from stdin\n")
    cli("send", queue, "--file", "body.txt")

    assert [m["body"] for m in api.claim(queue, limit=2)] == ["from stdin", "from a file"]


def test_every_line_is_a_message_of_its_own_in_the_order_of_the_input(cli, api: Api):
    queue = api.make_queue()

    ran = cli("send", queue, "--lines", "--batch", "3", stdin="1\n2\n\nthree\r\n4\n5")

    assert ran == (0, "5 sent\n", "")
    assert [m["body"] for m in api.claim(queue, limit=10)] == [1, 2, "three", 4, 5]


def test_a_refused_line_is_reported_and_does_not_stop_the_others(cli, api: Api):
    queue = api.make_queue(max_body_bytes=3)

    ran = cli("send", queue, "--lines", "--json", stdin="1\n123456\n2\n")

    assert ran.code == 1
    assert len(ran.records) == 2
    assert ran.err.endswith("(too_large)\n")
    assert [m["body"] for m in api.claim(queue, limit=10)] == [1, 2]


@pytest.mark.parametrize(
    "flags",
    [
        ("--lines", "--dedup-key", "k"),
        ("body", "--lines"),
        ("body", "--file", "x"),
        ("--text", "--json-body"),
        ("--lines", "--batch", "0"),
        ("--delay", "soon"),
        ("--due-at", "tomorrow"),
        ("--attribute", "novalue"),
        ("--priority", "high"),
    ],
)
def test_contradicting_flags_of_send_are_a_usage_error(cli, flags):
    ran = cli("send", "any", *flags)

    assert ran.code == 2
    assert ran.err.startswith("penstock: ")
    assert ran.err.endswith("(usage)\n")


def test_input_that_is_not_utf8_is_refused(cli, api: Api):
    assert cli("send", api.make_queue(), stdin=b"\xff\xfe").code == 1


def test_an_empty_claim_has_its_own_exit_code(cli, api: Api):
    assert cli("claim", api.make_queue()) == (4, "", "")


def test_a_claim_has_the_given_lease_and_name(cli, api: Api, clock):
    queue = api.make_queue()
    api.send(queue)

    claimed = cli("claim", queue, "--lease", "5m", "--by", "me", "--json").record

    clock.advance(minutes=4)
    assert api.message(claimed["id"])["state"] == "leased"
    assert api.message(claimed["id"])["leased_by"] == "me"


def test_a_claim_can_complete_its_messages_at_once(cli, api: Api):
    queue = api.make_queue()
    ids = [api.send(queue), api.send(queue)]

    ran = cli("claim", queue, "-n", "5", "--complete", "--json")

    assert [m["id"] for m in ran.records] == ids
    assert api.counts(queue) == {}


def test_a_message_cannot_send_control_characters_to_the_terminal(cli, api: Api):
    queue = api.make_queue()
    api.send(queue, "\x1b]0;owned\x07 [bold]x[/bold]")

    out = cli("claim", queue).out

    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[bold]x[/bold]" in out


def test_a_lost_lease_is_refused_and_the_others_are_done(cli, api: Api):
    queue = api.make_queue()
    api.send(queue)
    receipt = api.claim_one(queue)["receipt"]

    ran = cli("complete", receipt, receipt, "forged")

    assert ran.code == 1
    assert len(ran.out.splitlines()) == 1
    assert [line.rpartition(" ")[2] for line in ran.err.splitlines()] == ["(lease_lost)"] * 2


@pytest.mark.parametrize(
    ("command", "state", "attempts"),
    [
        (("fail", "--error", "boom", "--retry-in", "1h"), "waiting", 1),
        (("release",), "ready", 0),
        (("snooze", "--delay", "1h"), "waiting", 0),
        (("extend", "--lease", "1h"), "leased", 1),
    ],
)
def test_each_act_does_what_its_name_says(cli, api: Api, command, state, attempts):
    queue = api.make_queue()
    message_id = api.send(queue)
    name, *flags = command

    acted = cli(name, api.claim_one(queue)["receipt"], *flags, "--json").record

    assert (acted["id"], acted["state"]) == (message_id, state)
    message = api.message(message_id)
    assert (message["state"], message["attempts"]) == (state, attempts)


def test_receive_and_ack_are_aliases_of_claim_and_complete(cli, api: Api):
    queue = api.make_queue()
    api.send(queue)
    api.send(queue)

    receipt = cli("receive", queue, "--json").record["receipt"]

    assert cli("ack", receipt).code == 0
    assert cli("receive", queue, "--ack").code == 0
    assert api.counts(queue) == {}
    assert cli("receive", "--help").out == cli("claim", "--help").out
    assert "Alias: penstock ack" in cli("complete", "--help").out
    assert "  claim, receive " in cli("--help").out


def test_messages_are_listed_without_a_lease_or_an_attempt(cli, api: Api):
    queue = api.make_queue()
    message_id = api.send(queue, "ready")
    api.send(queue, "later", delay_ms=1000)

    assert cli("messages", queue, "--json").record["id"] == message_id
    assert cli("messages", queue, "--state", "waiting", "--json").record["body"] == "later"
    assert "ready" in cli("messages", queue).out
    assert cli("messages", queue, "--state", "gone").code == 2
    assert api.message(message_id)["attempts"] == 0


def test_a_message_is_shown_with_its_attempts(cli, api: Api):
    queue = api.make_queue()
    message_id = api.send(queue, {"a": 1})
    api.act(api.claim_one(queue)["receipt"], "fail", error="boom", retry_in_ms=0)
    api.act(api.claim_one(queue)["receipt"], "complete")

    shown = cli("messages", "show", message_id, "--json").record

    assert shown["message"]["state"] == "done"
    assert [a["error"] for a in shown["attempts"]] == ["boom"]
    assert [e["outcome"] for e in shown["endings"]] == ["done"]
    assert "boom" in cli("messages", "show", message_id).out


def test_a_message_is_completed_and_shown_with_its_result(cli, api: Api):
    queue = api.make_queue()
    message_id = api.send(queue)
    receipt = api.claim_one(queue)["receipt"]

    assert cli("complete", receipt, "--result", '{"total": 9.990}').code == 0

    assert '{"total":9.99}' in cli("messages", "show", message_id).out
    assert cli("messages", "show", message_id, "--json").record["message"]["result"] == {
        "total": 9.99
    }
    assert cli("result", message_id).out == '{"total":9.99}\n'


def test_messages_are_changed_by_hand(cli, api: Api):
    queue = api.make_queue()
    one, two = api.send(queue), api.send(queue)

    assert cli("messages", "reschedule", one, "--due-at", "2031-01-01").code == 0
    assert api.message(one)["state"] == "waiting"
    assert cli("messages", "cancel", one, "--reason", "r").out == f"{one} cancelled\n"
    assert api.message(one)["reason"] == "r"
    assert cli("messages", "bury", two).code == 0
    assert cli("messages", "redrive", two).code == 0
    assert api.message(two)["state"] == "ready"


def test_a_change_of_several_messages_reports_the_refused_ones(cli, api: Api):
    message_id = api.send(api.make_queue())

    ran = cli("messages", "cancel", "unknown", message_id, "--json")

    assert ran.code == 1
    assert ran.record["id"] == message_id
    assert "(message_not_found)" in ran.err


def test_the_json_output_equals_that_of_the_api(cli, api: Api):
    queue = api.make_queue()
    message_id = api.send(queue, [1, "ä"], kind="k", attributes={"a": "b"})

    shown = cli("messages", queue, "--json").record

    message = api.message(message_id)
    assert {name: message[name] for name in shown} == shown
    assert json.dumps(shown)


def test_a_group_is_claimed_in_a_row(cli, api: Api):
    queue = api.make_queue(ordering="group")
    for n, group in enumerate("aba"):
        api.send(queue, n, group=group)

    ran = cli("claim", queue, "-n", "10", "--in-a-row", "--json")

    assert [record["body"] for record in ran.records] == [0, 2, 1]


def test_only_messages_of_the_given_kinds_are_claimed(cli, api: Api):
    queue = api.make_queue()
    a, _, c = (api.send(queue, kind=kind) for kind in "abc")

    claimed = cli("claim", queue, "-n", "5", "--kind", "a", "--kind", "c", "--json").records

    assert [message["id"] for message in claimed] == [a, c]


def test_an_extension_can_start_the_timeout_and_report_progress(cli, api: Api):
    queue = api.make_queue()
    api.send(queue, timeout_ms=60_000)
    held = api.claim_one(queue)

    ran = cli("extend", held["receipt"], "--start", "--progress", '{"done": 3}')

    assert ran.code == 0
    shown = api.message(held["id"])
    assert shown["progress"] == {"done": 3}
    assert "started_at" in shown


def test_messages_are_selected_by_their_fields_and_changed(cli, api: Api):
    queue = api.make_queue()
    api.send(queue, kind="other")
    ids = [api.send(queue, kind="k", tags=["t"], group="g", entity_id="e") for _ in range(2)]
    flags = ("--kind", "k", "--tag", "t", "--group", "g", "--entity-id", "e")
    times = ("--sent-from", "2001-01-01", "--sent-before", "2099-01-01")

    listed = cli("messages", queue, *flags, *times, "--json").records
    counted = cli("messages", "bulk", queue, "cancel", "--state", "ready", *flags, "--dry-run")
    assert [message["id"] for message in listed] == ids
    assert counted == (0, "2 messages match; none was changed\n", "")
    assert api.counts(queue) == {"ready": 3}

    done = cli("messages", "bulk", queue, "cancel", "--state", "ready", *flags, "--reason", "why")
    assert done.out == "2 messages match, 2 changed, 0 refused\n"
    assert api.message(ids[0])["reason"] == "why"


def test_a_message_is_completed_by_hand(cli, api: Api):
    message_id = api.send(api.make_queue())

    assert cli("messages", "complete", message_id, "--reason", "x").out == f"{message_id} done\n"
    assert cli("messages", "complete", message_id).code != 0


def test_logs_of_attempts_are_printed_and_followed_to_the_end(cli, api: Api):
    queue = api.make_queue()
    message_id = api.send(queue)
    receipt = api.claim_one(queue)["receipt"]
    lines = [
        {"at": "2030-05-01T09:00:00Z", "level": "info", "source": "shop", "text": "10 of 200"},
        {"at": "2030-05-01T09:00:01Z", "level": "print", "text": "12 pallets"},
    ]
    api.call("POST", "/v1/leases/logs", {"logs": [{"receipt": receipt, "seq": 1, "lines": lines}]})

    shown = cli("messages", "show", message_id, "--logs").out.splitlines()
    assert shown[0] == "lease 1:"
    assert [line.split(" ", 2)[2] for line in shown[1:]] == ["INFO shop: 10 of 200", "12 pallets"]
    api.act(receipt, "complete")
    followed = cli("messages", "show", message_id, "--follow", "--json").records

    assert [(line["level"], line["text"]) for line in followed] == [
        ("info", "10 of 200"),
        ("print", "12 pallets"),
    ]


def test_dead_messages_are_listed_with_their_error_and_retried_by_group(cli, api: Api):
    queue = api.make_queue(max_attempts=1)
    for number in range(2):
        api.send(queue)
        error = f"shop.Declined: card {number}\n  at /app/jobs.py:22 in charge"
        ok(api.act(api.claim_one(queue)["receipt"], "fail", error=error))

    assert "shop.Declined: card 1 at jobs.py:22" in cli("messages", queue, "--state", "dead").out
    group = cli("errors", "--queue", queue, "--json").record
    assert (group["error"], group["place"], group["messages"]) == ("shop.Declined", "jobs.py:22", 2)
    assert "shop.Declined" in cli("errors", "--queue", queue).out
    redrive = ("errors", "redrive", group["id"], "--queue", queue)
    assert cli(*redrive, "--dry-run").out == "2 messages match; none was changed\n"
    assert cli(*redrive).out == "2 messages match, 2 redriven, 0 refused\n"
    assert api.counts(queue) == {"ready": 2}
