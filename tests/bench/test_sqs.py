"""The SQS part of the benchmark: its requests, its rows and its aim."""

from __future__ import annotations

import json

import pytest

from bench import sqs
from bench.clients.sqs import Target, delete_request, handles_in, receive_request, send_request
from bench.loads import BY_NAME
from bench.payload import BODY
from bench.peers import PEERS
from bench.peers.moto import Moto
from bench.peers.penstock import PenstockSqs
from bench.workspace import Workspace

QUEUE = Target(b"http://127.0.0.1/000000000000/q")


def sent(raw: bytes) -> tuple[dict[str, str], dict]:
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
    headers = {name.lower(): value for name, value in lines}
    assert int(headers["content-length"]) == len(body)
    return headers, json.loads(body)


@pytest.mark.parametrize(
    ("raw", "operation", "members"),
    [
        (send_request(QUEUE, 1), "SendMessage", {"MessageBody": BODY.decode()}),
        (receive_request(QUEUE, 10), "ReceiveMessage", {"MaxNumberOfMessages": 10}),
        (delete_request(QUEUE, [b"a"]), "DeleteMessage", {"ReceiptHandle": "a"}),
        (
            delete_request(QUEUE, [b"a", b"b"]),
            "DeleteMessageBatch",
            {"Entries": [{"Id": "0", "ReceiptHandle": "a"}, {"Id": "1", "ReceiptHandle": "b"}]},
        ),
    ],
)
def test_a_request_is_whole(raw, operation, members):
    headers, body = sent(raw)

    assert headers["x-amz-target"] == f"AmazonSQS.{operation}"
    assert headers["content-type"] == "application/x-amz-json-1.0"
    assert body == {"QueueUrl": QUEUE.url.decode(), **members}


def test_a_batch_of_ten_has_ten_bodies_of_one_kilobyte():
    _, body = sent(send_request(QUEUE, 10))

    assert [entry["MessageBody"] for entry in body["Entries"]] == [BODY.decode()] * 10
    assert len({entry["Id"] for entry in body["Entries"]}) == 10


def test_only_a_peer_that_needs_a_credential_gets_one():
    asked_as = Target(QUEUE.url, "a-client")

    assert "authorization" not in sent(send_request(QUEUE, 1))[0]
    assert "Credential=a-client," in sent(send_request(asked_as, 1))[0]["authorization"]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_receipt_handles_are_found_however_the_json_is_spaced(separators):
    messages = [{"Body": "x", "ReceiptHandle": "one"}, {"ReceiptHandle": "two", "Body": "y"}]

    found = handles_in(json.dumps({"Messages": messages}, separators=separators).encode())

    assert found == [b"one", b"two"]
    assert handles_in(b"{}") == []


def test_the_table_begins_with_our_sqs_face_and_has_our_native_api_to_compare_with():
    names = [peer.name for peer in sqs.rows([peer() for peer in PEERS])]

    assert names[:3] == ["penstock sqs", "penstock sqs on postgresql", "penstock"]
    assert "moto server" in names
    assert "redis streams" not in names


def test_it_is_measured_where_single_sends_to_our_sqs_face_are():
    send, cycle = BY_NAME["send"], BY_NAME["cycle"]

    assert sqs.is_wanted([PenstockSqs()], [send, cycle])
    assert not sqs.is_wanted([PenstockSqs()], [cycle])
    assert not sqs.is_wanted([Moto()], [send])


@pytest.mark.parametrize(("rate", "is_met"), [(850.0, True), (849.0, False)])
def test_the_aim_is_a_send_that_costs_at_most_15_percent_more_than_natively(rate, is_met):
    assert sqs.BesideNative([(1000.0, rate)]).is_met is is_met


def test_the_ratio_is_that_of_most_pairs_whatever_the_machine_did_meanwhile():
    found = sqs.BesideNative([(1000.0, 900.0), (100.0, 90.0), (1000.0, 100.0)])

    assert found.ratio == pytest.approx(0.9)


def test_both_faces_are_asked_in_turns_on_one_server(disk_path):
    found = sqs.measure(Workspace(disk_path), rounds=1, seconds=3.0, connections=4)

    assert isinstance(found, sqs.BesideNative), found
    assert len(found.pairs) == sqs.PAIRS
    assert all(native > 0 and face > 0 for native, face in found.pairs)
