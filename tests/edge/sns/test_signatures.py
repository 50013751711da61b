"""Envelopes are signed with a key pair of the store, and validators accept the signature."""

from __future__ import annotations

import pytest

from tests.edge.api import Api, assert_refused, ok
from tests.edge.sns.sns import Sns
from tests.edge.sns.validator import is_valid
from tests.edge.sqs.aws import name_of


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("fields", [{}, {"Subject": "über\\uns"}])
def test_an_envelope_has_a_valid_signature(
    sns: Sns, queue: str, version: str, fields: dict
) -> None:
    topic = sns.topic(SignatureVersion=version)
    sns.subscribe(topic, queue)

    sns.publish(topic, 'zwölf "Boxkämpfer"\n', **fields)

    envelope = sns.envelope(queue)
    assert envelope["SignatureVersion"] == version
    assert is_valid(envelope)
    assert not is_valid({**envelope, "Message": "another"})


def test_a_message_that_is_received_again_has_the_same_body(sns: Sns, queue: str) -> None:
    topic = sns.topic()
    sns.subscribe(topic, queue)
    sns.publish(topic)

    bodies = {sns.aws.receive_one(queue, VisibilityTimeout=0)["Body"] for _ in range(2)}

    assert len(bodies) == 1


def test_the_server_signs_no_text_of_a_sender(sns: Sns, topic: str, queue: str, api: Api) -> None:
    sns.subscribe(topic, queue, RawMessageDelivery="true")
    forged = {"kind": "sns.envelope", "body": {"Type": "Notification"}}
    name = topic.rpartition(":")[2]

    for path in (f"/v1/queues/{name_of(queue)}/messages", f"/v1/topics/{name}/events"):
        assert_refused(api.call("POST", path, forged), 400, "invalid_request")
    path = f"/v1/queues/{name_of(queue)}/messages/batch"
    [one] = ok(api.call("POST", path, {"messages": [forged]}))["results"]
    assert one["error"]["code"] == "invalid_request"

    assert sns.aws.bodies(queue) == []


def test_an_envelope_is_signed_in_a_dead_letter_queue(
    sns: Sns, topic: str, queue: str, api: Api
) -> None:
    home = api.make_queue(dead_letter_queue=name_of(queue))
    sns.subscribe(topic, sns.aws.client.get_queue_url(QueueName=home)["QueueUrl"])
    sns.publish(topic)

    assert api.act(api.claim_one(home)["receipt"], "bury").is_success

    assert is_valid(sns.envelope(queue))
