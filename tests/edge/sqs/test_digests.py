"""Digests: SDKs discard a message whose digest they cannot recompute."""

from __future__ import annotations

import hashlib

import pytest

from penstock.edge.sqs.rules import body
from penstock.edge.sqs.wire.model import MessageAttributeValue

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def a_text(data_type: str, value: str) -> MessageAttributeValue:
    return MessageAttributeValue(DataType=data_type, StringValue=value)


@pytest.mark.parametrize(
    ("name", "value", "digest"),
    [
        ("timestamp", a_text("Number", "1493147359900"), "235c5c510d26fb653d073faed50ae77c"),
        ("k", a_text("String", "x"), "a45daa70926828a2f0a1db3418e6feb4"),
        ("somevalue", a_text("String.custom", "somevalue"), "9e05cca738e70ff6c6041e82d5e77ef1"),
        (
            "attr1",
            MessageAttributeValue(
                DataType="Binary",
                BinaryValue=b"traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01",
            ),
            "8cbe4db156db8a94db8b801b7addb984",
        ),
        ("AWSTraceHeader", a_text("String", TRACE), "5ae4d5d7636402d80f4eb6d213245a88"),
    ],
)
def test_the_digest_of_one_attribute_is_what_aws_computes(name, value, digest):
    assert body.md5_of_attributes({name: value}) == digest


def test_attributes_are_digested_by_name_in_whatever_order_they_came():
    one, other = a_text("String", "x"), a_text("Number", "1")

    assert body.md5_of_attributes({"b": one, "a": other}) == body.md5_of_attributes(
        {"a": other, "b": one}
    )


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_attributes_have_no_digest(nothing):
    assert body.md5_of_attributes(nothing) is None


def test_a_body_is_digested_as_utf8():
    assert body.md5_of_body("ż".encode()) == hashlib.md5("ż".encode()).hexdigest()
