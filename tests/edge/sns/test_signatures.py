"""Envelopes are signed with a key pair of the store, and validators accept the signature."""

from __future__ import annotations

import pytest

from tests.edge.sns.sns import Sns
from tests.edge.sns.validator import is_valid


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
