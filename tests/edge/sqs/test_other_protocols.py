"""Queues and messages are the same through every API."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from penstock.domain.queue.queue import QueueSettings
from penstock.edge.cli.main import main
from tests.clocks import ManualClock
from tests.edge.api import Api, ok
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import Aws, arn_of, name_of, refused


def url_of(aws: Aws, queue: str) -> str:
    return str(aws.client.get_queue_url(QueueName=queue)["QueueUrl"])


# --- created here, used there ---


def test_a_queue_made_through_sqs_has_native_settings(aws: Aws, api: Api) -> None:
    letters = aws.make("letters")
    policy = {"deadLetterTargetArn": arn_of(letters), "maxReceiveCount": 4}
    queue = aws.make_fifo(
        VisibilityTimeout=45,
        DelaySeconds=5,
        MessageRetentionPeriod=600,
        ReceiveMessageWaitTimeSeconds=3,
        MaximumMessageSize=2048,
        DeduplicationScope="messageGroup",
    )
    plain = aws.make(RedrivePolicy=json.dumps(policy))

    settings = api.queue(name_of(queue))["settings"]
    assert settings["lease_ms"] == 45_000
    assert settings["delay_ms"] == 5_000
    assert settings["retention_ms"] == 600_000
    assert settings["wait_ms"] == 3_000
    assert settings["max_body_bytes"] == 2048
    assert settings["ordering"] == "group"
    assert settings["dedup_by_content"] is True
    assert settings["dedup_scope"] == "group"
    settings = api.queue(name_of(plain))["settings"]
    assert settings["dead_letter_queue"] == name_of(letters)
    assert settings["max_attempts"] == 4


def test_a_message_sent_through_sqs_is_claimed_natively(aws: Aws, api: Api, queue: str) -> None:
    attributes = {
        "text": {"DataType": "String", "StringValue": "é"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
    }
    sent = aws.send(queue, '{"a": 1}', MessageAttributes=attributes, MessageGroupId="g")

    message = api.claim_one(name_of(queue))

    assert message["id"] == sent["MessageId"]
    assert message["body"] == '{"a": 1}'  # a string, the only type that SQS has
    assert message["attributes"]["text"] == "é"
    assert message["attributes"]["bytes"] == "AAE="
    assert message["group"] == "g"
    ok(api.act(message["receipt"], "complete"))
    assert aws.counts(queue) == (0, 0, 0)


def test_a_text_that_another_face_calls_binary_is_received_as_a_text(
    aws: Aws, api: Api, queue: str
) -> None:
    api.send(name_of(queue), "x", attributes={"AWS.types": '{"a": "Binary"}', "a": "é"})

    message = aws.receive_one(queue, MessageAttributeNames=["All"])

    assert message["MessageAttributes"] == {"a": {"DataType": "String", "StringValue": "é"}}


def test_a_handle_of_sqs_is_a_native_receipt(aws: Aws, api: Api, queue: str) -> None:
    sent = aws.send(queue)
    handle = aws.handle(queue)

    ok(api.act(handle, "fail", error="no luck"))

    assert aws.bodies(queue, VisibilityTimeout=0) == ["hello"]
    ok(api.act(aws.handle(queue), "complete"))
    message = api.message(sent["MessageId"])
    assert message["state"] == "done"
    assert aws.counts(queue) == (0, 0, 0)


def test_history_shows_what_sqs_did(aws: Aws, api: Api, queue: str) -> None:
    deleted, purged = aws.send(queue, "deleted"), aws.send(queue, "purged")
    aws.delete(queue, aws.handle(queue))
    aws.client.purge_queue(QueueUrl=queue)

    assert api.message(deleted["MessageId"])["state"] == "done"
    gone = api.message(purged["MessageId"])
    assert (gone["state"], gone["reason"]) == ("cancelled", "purged")


def test_tags_are_labels(aws: Aws, api: Api, queue: str) -> None:
    aws.client.tag_queue(QueueUrl=queue, Tags={"team": "mail"})
    assert api.queue(name_of(queue))["settings"]["labels"] == {"team": "mail"}

    # SQS itself rejects the second of these.
    labels = {"team": "post", "aws:ours": "yes"}
    ok(api.call("PATCH", f"/v1/queues/{name_of(queue)}", {"labels": labels}))
    aws.client.tag_queue(QueueUrl=queue, Tags={"one": "more"})
    aws.client.untag_queue(QueueUrl=queue, TagKeys=["team"])

    found = aws.client.list_queue_tags(QueueUrl=queue)["Tags"]
    assert found == {"aws:ours": "yes", "one": "more"}


def test_our_command_line_uses_such_a_queue(
    aws: Aws,
    server: LiveServer,
    queue: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PENSTOCK_SERVER", server.url)

    assert main(["send", name_of(queue), '{"by": "hand"}']) == 0

    assert json.loads(aws.bodies(queue)[0]) == {"by": "hand"}
    aws.send(queue, "by sqs")
    capsys.readouterr()
    assert main(["queues", "show", name_of(queue), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["ready"] == 1


# --- created there, used here ---


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"a": [1, None], "ü": "é"}, '{"a":[1,null],"ü":"é"}'),
        ([1, 2], "[1,2]"),
        (17, "17"),
        (None, "null"),
        ("plain ☃\n", "plain ☃\n"),
    ],
)
def test_a_native_message_is_received_as_its_text(
    aws: Aws, api: Api, body: object, shown: str
) -> None:
    name = api.make_queue()
    message_id = api.send(name, body, attributes={"k": "v", "not allowed!": "w"}, group="g")
    queue = url_of(aws, name)

    got = aws.receive_one(queue, MessageAttributeNames=["All"], AttributeNames=["All"])

    assert got["MessageId"] == message_id
    expected = json.loads(shown) if not isinstance(body, str) else shown
    found = json.loads(got["Body"]) if not isinstance(body, str) else got["Body"]
    assert found == expected
    assert got["MessageAttributes"] == {
        "k": {"DataType": "String", "StringValue": "v"},
        "not allowed!": {"DataType": "String", "StringValue": "w"},
    }
    assert got["Attributes"]["MessageGroupId"] == "g"
    aws.delete(queue, got["ReceiptHandle"])
    assert api.message(message_id)["state"] == "done"


def test_characters_that_xml_cannot_hold_are_kept_in_json_and_replaced_in_xml(
    aws: Aws, api: Api, http: httpx.Client
) -> None:
    name = api.make_queue()
    queue = url_of(aws, name)
    api.send(name, "a\x01b")

    got = aws.receive_one(queue, VisibilityTimeout=0)
    xml = http.get(f"/000000000000/{name}", params={"Action": "ReceiveMessage"}).text

    assert got["Body"] == "a\x01b"
    assert "<Body>a\ufffdb</Body>" in xml


def test_a_native_queue_is_shown_as_closely_as_sqs_can_express(aws: Aws, api: Api) -> None:
    letters = api.make_queue("letters.of")
    name = api.make_queue(
        "native", lease_ms=1500, max_attempts=7, dead_letter_queue=letters, wait_ms=20_000
    )

    attributes = aws.attributes(url_of(aws, name))

    assert attributes["VisibilityTimeout"] == "1"
    assert attributes["MessageRetentionPeriod"] == "345600"
    assert attributes["ReceiveMessageWaitTimeSeconds"] == "20"
    assert json.loads(attributes["RedrivePolicy"]) == {
        "deadLetterTargetArn": f"arn:aws:sqs:us-east-1:000000000000:{letters}",
        "maxReceiveCount": 7,
    }
    sources = aws.client.list_dead_letter_source_queues(QueueUrl=url_of(aws, letters))
    assert sources["queueUrls"] == [url_of(aws, name)]


def test_a_change_through_sqs_leaves_what_it_does_not_name(aws: Aws, api: Api) -> None:
    """Half seconds, unlimited retention, a dead-letter queue without a limit of attempts."""
    letters = api.make_queue("letters")
    native: dict[str, Any] = {
        "lease_ms": 1500,
        "delay_ms": 250,
        "retention_ms": None,
        "max_attempts": None,
        "dead_letter_queue": letters,
        "wait_ms": None,
        "max_body_bytes": None,
        "redelivery": "back",
        "dedup_window_ms": 1,
    }
    name = api.make_queue(**native)
    queue = url_of(aws, name)
    before = api.queue(name)["settings"]

    aws.set(queue, MaximumMessageSize=2048)
    aws.client.tag_queue(QueueUrl=queue, Tags={"a": "b"})
    aws.client.add_permission(
        QueueUrl=queue, Label="l", AWSAccountIds=["111111111111"], Actions=["SendMessage"]
    )
    aws.client.remove_permission(QueueUrl=queue, Label="l")

    after = api.queue(name)["settings"]
    assert after == {**before, "max_body_bytes": 2048, "labels": {"a": "b"}}


def test_a_native_change_leaves_what_sqs_keeps(aws: Aws, api: Api, queue: str) -> None:
    aws.set(queue, Policy='{"Id":"x"}', KmsMasterKeyId="k")

    ok(api.call("PATCH", f"/v1/queues/{name_of(queue)}", {"lease_ms": 2000}))

    assert aws.attribute(queue, "Policy") == '{"Id":"x"}'
    assert aws.attribute(queue, "KmsMasterKeyId") == "k"
    assert aws.attribute(queue, "VisibilityTimeout") == "2"


def test_a_native_queue_ordered_by_group_is_a_fifo_queue(aws: Aws, api: Api) -> None:
    name = api.make_queue(ordering="group")
    queue = url_of(aws, name)
    api.send(name, "a", group="g")
    api.send(name, "b", group="g")

    assert aws.attribute(queue, "FifoQueue") == "true"
    assert aws.bodies(queue) == ["a", "b"]
    with refused("MissingParameter"):
        aws.send(queue)


def test_a_buried_message_is_not_received(
    aws: Aws, api: Api, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    ok(api.act(aws.handle(queue), "bury", reason="enough"))

    clock.advance(hours=1)

    assert aws.receive(queue) == []
    assert aws.counts(queue) == (0, 0, 0)


def test_a_paused_queue_gives_nothing(aws: Aws, api: Api, queue: str) -> None:
    aws.send(queue)
    ok(api.call("POST", f"/v1/queues/{name_of(queue)}/pause"))

    assert aws.receive(queue) == []

    ok(api.call("POST", f"/v1/queues/{name_of(queue)}/resume"))
    assert aws.bodies(queue) == ["hello"]


def test_the_queue_of_aweq(make_server: MakeServer) -> None:
    server = make_server()  # other tests use this queue on the shared servers
    aws, http = Aws(server.url), httpx.Client(base_url=server.url)
    http.post("/send-message", json={"message": {"from": "aweq"}}).raise_for_status()
    queue = url_of(aws, "aweq")

    got = aws.receive_one(queue)
    aws.send(queue, "from sqs")
    received = http.get("/receive-message").json()["messages"]

    assert json.loads(got["Body"]) == {"from": "aweq"}
    assert [entry["message"] for entry in received] == ["from sqs"]
    http.close()
    aws.close()


# --- what other APIs write where SQS stores its own data ---

UNREADABLE = {
    "sqs.Policy": "junk",
    "sqs.RedriveAllowPolicy": "junk",
    "sqs.KmsDataKeyReusePeriodSeconds": "abc",
    "sqs.SqsManagedSseEnabled": "perhaps",
    "sqs.FifoThroughputLimit": "much",
}


def annotate(api: Api, queue: str, annotations: dict[str, str]) -> None:
    ok(api.call("PATCH", f"/v1/queues/{name_of(queue)}", {"annotations": annotations}))


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_an_annotation_that_sqs_cannot_read_counts_as_unset(
    aws: Aws, api: Api, line: str, name: str
) -> None:
    before = aws.attributes(line)
    policy = json.dumps({"deadLetterTargetArn": arn_of(line), "maxReceiveCount": 4})
    source = aws.make_fifo()
    annotate(api, line, {name: UNREADABLE[name], "mine": "kept"})

    after = aws.attributes(line)
    aws.set(line, DelaySeconds=1)
    aws.set(source, RedrivePolicy=policy)
    aws.client.add_permission(
        QueueUrl=line, Label="l", AWSAccountIds=["111111111111"], Actions=["SendMessage"]
    )

    assert {k: v for k, v in after.items() if k != "LastModifiedTimestamp"} == {
        k: v for k, v in before.items() if k != "LastModifiedTimestamp"
    }
    assert aws.attribute(line, "DelaySeconds") == "1"
    assert api.queue(name_of(line))["settings"]["annotations"].keys() == {"mine", "sqs.Policy"}


def test_a_limit_per_group_ends_when_another_api_changes_the_scope(aws: Aws, api: Api) -> None:
    limit = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
    line = aws.make_fifo(**limit)
    ok(api.call("PATCH", f"/v1/queues/{name_of(line)}", {"dedup_scope": "queue"}))

    aws.set(line, DelaySeconds=1)

    assert aws.attribute(line, "FifoThroughputLimit") == "perQueue"


@pytest.mark.parametrize("text", ["junk", "", "-1", "9" * 15, "9" * 5000])
def test_a_queue_can_be_purged_whatever_its_stored_time_of_the_last_purge(
    make_server: MakeServer, text: str
) -> None:
    server = make_server(sqs={"limits": "strict"})
    aws, api = Aws(server.url), Api(server.url)
    queue = aws.make()
    aws.send(queue)
    annotate(api, queue, {"sqs.PurgedAt": text})

    aws.client.purge_queue(QueueUrl=queue)

    assert aws.counts(queue) == (0, 0, 0)
    api.close()


def test_a_queue_that_other_faces_have_filled_with_annotations_says_so_in_the_words_of_sqs(
    aws: Aws, api: Api, queue: str
) -> None:
    annotations = {f"a{n}": "x" for n in range(50)}
    ok(api.call("PATCH", f"/v1/queues/{name_of(queue)}", {"annotations": annotations}))

    with refused("OverLimit", status=403) as refusal:
        aws.set(queue, KmsMasterKeyId="alias/mine")

    assert refusal.text == (
        f"The attributes of queue {name_of(queue)} are too many or too long together."
    )


def test_sqs_limits_the_size_of_a_message_where_other_apis_allow_more(
    make_server: MakeServer,
) -> None:
    most, more = 1024 * 1024, 4 * 1024 * 1024
    server = make_server(limits={"max_body_bytes": more})
    server.broker.queues.put("big", QueueSettings(max_body_bytes=more)).result()
    alone = Aws(server.url)
    queues = [url_of(alone, "big"), alone.make()]

    for queue in queues:
        assert alone.attribute(queue, "MaximumMessageSize") == str(most)
        alone.send(queue, "x" * most)
        with refused("InvalidParameterValue") as refusal:
            alone.send(queue, "x" * (most + 1))
        assert refusal.text.endswith(f"Message must be shorter than {most} bytes.")


def test_a_queue_without_a_limit_reports_that_of_sqs(make_server: MakeServer) -> None:
    server = make_server(limits={"max_body_bytes": 4 * 1024 * 1024})
    server.broker.queues.put("plain", QueueSettings()).result()
    alone = Aws(server.url)

    assert alone.attribute(url_of(alone, "plain"), "MaximumMessageSize") == str(1024 * 1024)
