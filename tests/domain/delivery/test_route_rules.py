"""Routing rules in gateleen's form are accepted as a whole or rejected as a whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.domain.delivery.route import DeliveryRoute, HeaderMode, HeaderRule
from penstock.domain.delivery.route_rules import parse_rules
from penstock.domain.errors import InvalidRequest

ONE, TWO = (f"whsec_{letter * 32}" for letter in "ab")


def parsed(**rule: Any) -> DeliveryRoute:
    rule = {"url": "http://h/$1"} | rule
    if rule["url"] is None:
        del rule["url"]
    [route] = parse_rules(json.dumps({"/a/(.*)": rule})).routes
    return route


def test_rules_apply_in_the_order_in_which_they_are_written() -> None:
    names = ["/z/(.*)", "/a/(.*)", "/m", "/b"]

    table = parse_rules(json.dumps({name: {"url": "http://h/"} for name in names}))

    assert [route.pattern for route in table.routes] == names
    assert parse_rules("{}").routes == ()


def test_a_rule_contains_everything_about_its_route() -> None:
    route = parsed(
        description="pays",
        methods=["put", "POST"],
        timeout=5,
        concurrency=3,
        retryIntervals=[1, 60],
        staticHeaders={"X-A": "b"},
        basicAuth={"username": "u", "password": "p"},
        translateStatus={"4..": 200},
        metricName="pay",
        signingSecrets=[ONE, TWO],
    )

    assert route == DeliveryRoute(
        pattern="/a/(.*)",
        url="http://h/$1",
        description="pays",
        methods=frozenset({"PUT", "POST"}),
        timeout_ms=5_000,
        concurrency=3,
        retry_intervals_ms=(1_000, 60_000),
        headers=(HeaderRule("Authorization", "Basic dTpw"), HeaderRule("X-A", "b")),
        statuses=(("4..", 200),),
        metric_name="pay",
        signing_secrets=(ONE, TWO),
    )


def test_fields_that_a_rule_leaves_out_have_the_defaults_of_gateleens_queue() -> None:
    route = parsed()

    assert (route.timeout_ms, route.methods, route.concurrency) == (120_000, frozenset(), None)
    assert parsed(connectionPoolSize=7).concurrency == 7
    assert parsed(signingSecret=ONE).signing_secrets == (ONE,)


def test_headers_may_be_a_list_of_what_is_done_with_them() -> None:
    headers = [
        {"header": "X-A", "value": "1"},
        {"header": "X-B", "value": None},
        {"header": "X-C", "value": "3", "mode": "complete"},
    ]

    assert parsed(headers=headers).headers == (
        HeaderRule("X-A", "1"),
        HeaderRule("X-B", None),
        HeaderRule("X-C", "3", HeaderMode.COMPLETE),
    )


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"host": "h", "path": "/x/$1"}, "http://h/x/$1"),
        ({"host": "h", "port": 81, "scheme": "https", "path": "x"}, "https://h:81/x"),
        ({"host": "h"}, "http://h/"),
    ],
)
def test_the_target_may_be_given_in_parts(parts: dict[str, Any], url: str) -> None:
    assert parsed(url=None, **parts).url == url


def test_fields_for_reading_or_logging_are_ignored() -> None:
    more = {"expandOnBackend": True, "logExpiry": 4, "keepAlive": True, "doc": "x", "profile": []}

    assert parsed(**more) == parsed()


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"url": None}, "url is missing"),
        ({"url": None, "path": "/x"}, "whole url"),
        ({"path": "/x"}, "not both"),
        ({"storage": "main"}, "resource storage"),
        ({"profile": ["lang"]}, "profiles"),
        ({"proxyOptions": {"host": "p"}}, "proxy"),
        ({"nonsense": 1}, "'nonsense' is not a known property"),
        ({"methods": ["FETCH"]}, "FETCH"),
        ({"methods": "PUT"}, "list of texts"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"timeout": "5"}, "timeout"),
        ({"concurrency": 0}, "concurrency"),
        ({"retryIntervals": [0]}, "retryIntervals"),
        ({"retryIntervals": "1"}, "retryIntervals"),
        ({"staticHeaders": {}, "headers": []}, "not both"),
        ({"staticHeaders": {"X-A": 1}}, "X-A"),
        ({"staticHeaders": {"X-A": "b\r\nX-C: d"}}, "X-A"),
        ({"staticHeaders": {"X A": "b"}}, "is not a header name"),
        ({"headers": [{"header": "X-A"}]}, "headers"),
        ({"headers": [{"header": "X-A", "value": "1", "mode": "maybe"}]}, "mode"),
        ({"basicAuth": {"username": "u"}}, "basicAuth"),
        ({"translateStatus": {"404": 99}}, "translateStatus"),
        ({"translateStatus": {"(": 200}}, "translateStatus"),
        ({"signingSecret": ""}, "signing"),
        ({"signingSecret": "whsec_short"}, "24 to 64 bytes in base64"),
        ({"metricName": ""}, "metricName"),
        ({"logExpiry": "long"}, "logExpiry"),
        ({"url": "http://h/$2"}, "[$]2"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_by_name(rule: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidRequest, match=why) as refused:
        parsed(**rule)

    assert "rule '/a/(.*)'" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "JSON"),
        ("[]", "one JSON object"),
        ('{"/a": 1}', "a rule must be an object"),
        ('{"/a(": {"url": "http://h/"}}', "regular expression"),
        ('{"/ok": {"url": "http://h/"}, "/a(": {"url": "http://h/"}}', "'/a[(]'"),
        ('{" ": {"url": "http://h/"}}', "a pattern has"),
        ('{"/a\\u0000": {"url": "http://h/"}}', "a pattern has"),
        ('{"/a": {"url": "http://h/"}, "/a": {"url": "http://i/"}}', "twice"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_a_document_is_refused_as_a_whole(text: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        parse_rules(text)


def test_two_routes_do_not_share_the_name_of_a_metric() -> None:
    rules = {f"/{i}": {"url": "http://h/", "metricName": "same"} for i in range(2)}

    with pytest.raises(InvalidRequest, match="same"):
        parse_rules(json.dumps(rules))
