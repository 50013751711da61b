"""The headers that control a delivery."""

from __future__ import annotations

import pytest
from msgspec import structs

from penstock.domain.delivery import delivery as deliveries
from penstock.domain.delivery.delivery import Delivery
from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import Queue, QueueSettings, check_settings

NOW = 1_000_000


def a_delivery(**headers: str) -> Delivery:
    given = tuple((name.replace("__", "-"), text) for name, text in headers.items())
    return Delivery(method="PUT", uri="/a?b", headers=given, queued_at=NOW)


def test_a_delivery_survives_a_round_trip():
    delivery = Delivery(
        method="PUT", uri="/a", headers=(("a", "é"),), payload=b"\x00\xff", queued_at=NOW
    )

    assert deliveries.from_body(deliveries.to_body(delivery)) == delivery


@pytest.mark.parametrize("body", ["", "1", "{}", '{"method": "PUT"}', "[" * 5_000])
def test_an_invalid_delivery_is_refused(body):
    with pytest.raises(InvalidRequest):
        deliveries.from_body(body)


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({}, None),
        ({"X__Expire__After": "5"}, 5),
        ({"x__queue__expire__after": "7", "x__expire__after": "5"}, 7),
        ({"x__queue__expire__after": "-1", "x__expire__after": "5"}, None),
        ({"x__queue__expire__after": "-2", "x__expire__after": "5"}, 5),
        ({"x__queue__expire__after": "soon", "x__expire__after": "5"}, 5),
        ({"x__expire__after": "-2"}, None),
        ({"x__expire__after": "0"}, 0),
        ({"x__expire__after": "2147483648"}, None),
        ({"x__expire__after": "1.5"}, None),
    ],
)
def test_when_it_expires(headers, after_s):
    delivery = a_delivery(**headers)

    assert delivery.expire_after_s == after_s
    if after_s is not None:
        assert not delivery.is_expired(now=NOW + after_s * 1_000)
        assert delivery.is_expired(now=NOW + after_s * 1_000 + 1)
    else:
        assert not delivery.is_expired(now=2**60)


def test_it_goes_by_its_own_id_or_by_its_uri():
    assert a_delivery().request_id == "/a?b"
    assert a_delivery(X__Rp__Unique__Id="two").request_id == "two"
    both = a_delivery(x__rp__unique__id="two", x__rp__unique_id="one")
    assert both.request_id == "one"
    assert a_delivery(x__rp__unique_id="").request_id == "/a?b"


def test_the_circuit_counts_a_delivery_by_its_unique_id_or_else_by_its_uri_or_message_id():
    named = structs.replace(a_delivery(x__rp__unique_id="header"), unique_id="given")
    plain = structs.replace(a_delivery(), unique_id=None)

    assert a_delivery().counted_as("message") == "/a?b", "as gateleen does"
    assert a_delivery(x__rp__unique_id="header").counted_as("message") == "header"
    assert plain.counted_as("message") == "message"
    assert named.counted_as("message") == "given"
    assert structs.replace(named, unique_id=None).counted_as("message") == "header"
    assert deliveries.from_body(deliveries.to_body(plain)) == plain


def test_long_ids_are_shortened_and_stay_apart():
    one, other = ("x" * 5_000 + end for end in "12")

    assert len(deliveries.short_id(one)) == 256
    assert deliveries.short_id(one) != deliveries.short_id(other)
    assert deliveries.short_id("x" * 256) == "x" * 256


def test_retry_headers_are_read_by_status_code():
    headers = {"X__Queue__Retry__404": "0", "x__queue__retry__5XX": "3", "x__queue": "a"}

    assert a_delivery(**headers).retries == {"404": "0", "5xx": "3"}


def test_queues_for_deliveries_are_known_by_their_label_and_their_order():
    settings = check_settings(deliveries.queue_settings(), name="a")

    def is_one(settings: QueueSettings) -> bool:
        return deliveries.is_for_deliveries(
            Queue(queue_no=1, name="a", settings=settings, created_at=0)
        )

    assert is_one(settings)
    assert not is_one(QueueSettings(labels=settings.labels))
    assert not is_one(QueueSettings(ordering=settings.ordering))


def test_the_same_place_with_the_same_payload_is_the_same_content():
    keys = {deliveries.content_key(uri, body) for uri in ("/a", "/b") for body in (None, b"1")}

    assert len(keys) == 4
    assert deliveries.content_key("/a", b"") == deliveries.content_key("/a", None)
