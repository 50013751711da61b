"""`penstock topics` and `penstock notifications`"""

from __future__ import annotations

from tests.edge.api import Api, a_name


def test_a_topic_is_created_subscribed_published_to_and_deleted(cli, api: Api):
    topic = a_name("topic")

    assert cli("topics", "create", topic).code == 0
    made = cli("topics", "subscribe", topic, "mailer", "--kind", "order.*", "--json").record
    assert (made["queue"], made["kinds"]) == (f"{topic}.mailer", ["order.*"])
    ran = cli("topics", "publish", topic, '{"order": 7}', "--kind", "order.placed")
    assert "1 messages" in ran.err
    cli("topics", "publish", topic, "unmatched", "--kind", "other")

    assert api.claim_one(f"{topic}.mailer")["attributes"]["event.id"] == ran.out.strip()
    shown = cli("topics", "show", topic, "--json").record
    assert (shown["published"], shown["unmatched"]) == (2, 1)
    assert "mailer" in cli("topics", "show", topic).out
    assert topic in cli("topics", "--prefix", topic).out

    assert cli("topics", "delete", topic).code != 0
    assert cli("topics", "unsubscribe", topic, "mailer", "--with-queue").code == 0
    assert api.call("GET", f"/v1/queues/{topic}.mailer").status_code == 404
    assert cli("topics", "delete", topic).code == 0


def test_a_notification_is_recorded_found_moved_and_removed(cli, api: Api):
    queue, tag = api.make_queue(), a_name("account")

    ran = cli("notifications", "record", queue, '{"n": 7}', "--in", "30d", "--tag", tag)
    other = cli("notifications", "record", queue, "text", "--in", "1d", "--tag", tag)
    recorded = ran.out.strip()

    found = cli("notifications", "--tag1", tag, "--json").records
    assert [one["id"] for one in found] == [recorded, other.out.strip()]
    assert [one["body"] for one in found] == [{"n": 7}, "text"]
    assert recorded in cli("notifications", "--tag", tag, "--queue", queue).out
    assert cli("notifications", "move", recorded, "--due-at", "2040-01-01").code == 0
    [moved, _] = cli("notifications", "--tag1", tag, "--json").records
    assert moved["due_at"] == "2040-01-01T00:00:00.000Z"

    assert cli("notifications", "remove", recorded).out == "1 cancelled\n"
    assert cli("notifications", "remove", "--tag1", tag, "--queue", queue).out == "1 cancelled\n"
    past = cli("notifications", "--tag1", tag, "--which", "past", "--json").records
    assert {one["state"] for one in past} == {"cancelled"}


def test_invalid_arguments_are_reported(cli, api: Api):
    queue = api.make_queue()

    assert cli("notifications", "record", queue, "x").code == 2
    assert cli("notifications", "remove").code == 2
    assert cli("notifications", "remove", "some-id", "--tag", "x").code == 2
    assert cli("notifications").code != 0
    assert cli("topics", "show", "nowhere").code != 0


def test_a_subscription_has_a_filter_and_an_endpoint(cli, api: Api):
    topic = a_name("topic")
    flags = ("--filter", '{"a": ["b"]}', "--url", "http://h/hook", "--order", "group")

    made = cli("topics", "subscribe", topic, "hook", *flags, "--enabled", "no", "--json").record

    assert made["filter"] == {"a": ["b"]}
    assert (made["endpoint"]["url"], made["endpoint"]["order"]) == ("http://h/hook", "group")
    assert made["endpoint"]["enabled"] is False
    assert "http://h/hook" in cli("topics", "show", topic).out
    refused = cli("topics", "subscribe", topic, "other", "--order", "group")
    assert "--url" in refused.err
