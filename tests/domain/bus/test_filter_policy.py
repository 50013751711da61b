"""Filters: which events match, and which filters are rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.domain.bus.conditions import InvalidFilter
from penstock.domain.bus.filter_policy import (
    MAX_COMBINATIONS,
    FilteredEvent,
    FilterScope,
    compile_filter,
)

BODY, ATTRIBUTES = FilterScope.BODY, FilterScope.ATTRIBUTES


def matches_body(policy: Any, body: Any) -> bool:
    event = FilteredEvent(json.dumps(body), None)
    return compile_filter(json.dumps(policy), BODY).accepts(event)


def matches(policy: Any, types: dict[str, str] | None = None, **attributes: str) -> bool:
    given = attributes | ({"AWS.types": json.dumps(types)} if types else {})
    return compile_filter(json.dumps(policy), ATTRIBUTES).accepts(FilteredEvent("1", given))


@pytest.mark.parametrize(
    ("condition", "matching", "others"),
    [
        ("red", ["red", ["blue", "red"]], ["Red", "blue", 1, None, []]),
        (100, [100, 100.0, [1, 100]], ["100", 101, True]),
        (True, [True], ["true", 1, False]),
        (None, [None], ["null", 0, False]),
        ({"prefix": "eu-"}, ["eu-west", ["us", "eu-"]], ["us", "Eu-west", 3]),
        ({"suffix": ".png"}, ["a.png"], ["a.jpg", ".pn"]),
        ({"equals-ignore-case": "Tennis"}, ["tennis", "TENNIS"], ["tennis2"]),
        ({"wildcard": "a*b*c"}, ["abc", "axbyc", "a*b*c"], ["ac", "abcd", "acb"]),
        ({"wildcard": "*ab*ab"}, ["abab", "xabyab"], ["ab", "aba"]),
        ({"wildcard": "plain"}, ["plain"], ["plains"]),
        ({"cidr": "10.0.0.0/24"}, ["10.0.0.255"], ["10.0.1.0", "::1", "no"]),
        ({"numeric": ["=", 5]}, [5, 5.0], [6, "5", True]),
        ({"numeric": [">", 0, "<=", 150]}, [1, 150], [0, 151]),
        ({"anything-but": "red"}, ["blue", 1, ["red", "blue"]], ["red", ["red"]]),
        ({"anything-but": ["red", 5]}, ["blue", 6], ["red", 5]),
        ({"anything-but": {"prefix": "order-"}}, ["data"], ["order-1"]),
        ({"anything-but": {"suffix": ["a", "b"]}}, ["c"], ["xa", "xb"]),
        ({"anything-but": {"equals-ignore-case": "a"}}, ["b"], ["A"]),
        ({"anything-but": {"wildcard": "a*"}}, ["b"], ["ab"]),
        ({"exists": True}, ["x", None, []], []),
    ],
)
def test_a_condition_matches_values_of_its_kind(condition, matching, others):
    policy = {"key": [condition]}

    assert [value for value in matching if not matches_body(policy, {"key": value})] == []
    assert [value for value in others if matches_body(policy, {"key": value})] == []
    assert not matches_body(policy, {"other": 1}), "the key is missing"


def test_all_keys_must_match_and_any_condition_of_each():
    policy = {"a": ["1", {"prefix": "x"}], "b": [{"exists": False}]}

    assert matches_body(policy, {"a": "xy"})
    assert not matches_body(policy, {"a": "xy", "b": 1})
    assert not matches_body(policy, {"b": 1})


def test_alternatives_match_if_any_of_them_does():
    policy = {"source": ["shop"], "$or": [{"kind": ["new"]}, {"size": [{"numeric": [">", 9]}]}]}

    assert matches_body(policy, {"source": "shop", "kind": "new"})
    assert matches_body(policy, {"source": "shop", "size": 10})
    assert not matches_body(policy, {"source": "shop", "size": 9})
    assert not matches_body(policy, {"kind": "new"})


def test_a_key_named_or_without_alternatives_is_an_ordinary_key():
    assert matches_body({"$or": ["a", "b"]}, {"$or": "b"})


def test_nested_keys_match_within_one_element_of_an_array():
    policy = {"order": {"items": {"color": ["red"], "size": ["L"]}}}

    assert matches_body(policy, {"order": {"items": {"color": "red", "size": "L"}}})
    both = [{"color": "blue", "size": "L"}, {"color": "red", "size": "L"}]
    assert matches_body(policy, {"order": {"items": both}})
    mixed = [{"color": "blue", "size": "L"}, {"color": "red", "size": "S"}]
    assert not matches_body(policy, {"order": {"items": mixed}})
    assert matches_body({"a": {"b": [{"exists": False}]}}, {"c": 1})


@pytest.mark.parametrize("body", ["text", 7, None, [{"a": "x"}]])
def test_a_filter_on_bodies_matches_only_objects(body):
    assert not matches_body({"a": [{"exists": False}]}, body)


def test_a_body_that_is_a_string_of_json_counts_as_what_it_contains():
    assert matches_body({"a": ["x"]}, json.dumps({"a": "x"}))


def test_attributes_are_compared_by_their_types():
    types = {"price": "Number", "tags": "String.Array", "image": "Binary"}
    given = {"price": "100.0", "tags": '["new", 5, null]', "image": "AAAA", "name": "100"}

    assert matches({"price": [100]}, types, **given)
    assert matches({"price": [{"numeric": ["<", 101]}]}, types, **given)
    assert not matches({"name": [100]}, types, **given), "a string"
    assert matches({"tags": ["new"]}, types, **given)
    assert matches({"tags": [5]}, types, **given)
    assert matches({"tags": [None]}, types, **given)
    assert matches({"image": [{"exists": True}]}, types, **given)
    assert not matches({"image": ["AAAA"]}, types, **given)
    assert not matches({"AWS.types": [{"exists": True}]}, types, **given)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ([], "must be a JSON object"),
        ({"a": "b"}, "must be an object or an array"),
        ({"a": []}, "Empty arrays"),
        ({"a": {}}, "Empty objects"),
        ({"a": [["b"]]}, "Match value must be"),
        ({"a": [{"sounds-like": "b"}]}, "Unrecognized match type sounds-like"),
        ({"a": [{"prefix": "b", "suffix": "c"}]}, "Only one key"),
        ({"a": [{"prefix": 5}]}, "prefix match pattern must be a string"),
        ({"a": [{"exists": "yes"}]}, "must be either true or false"),
        ({"a": [{"numeric": []}]}, "numeric"),
        ({"a": [{"numeric": ["~", 1]}]}, "Unrecognized numeric range operator"),
        ({"a": [{"numeric": ["<", "1"]}]}, "must be numeric"),
        ({"a": [{"numeric": [">", 5, "<", 5]}]}, "Bottom must be less than top"),
        ({"a": [{"numeric": ["<", 5, ">", 5]}]}, "lower and an upper"),
        ({"a": [{"numeric": ["=", 10**10]}]}, "Value must be from"),
        ({"a": [{"cidr": "10.0.0.0/99"}]}, "Malformed CIDR"),
        ({"a": [{"anything-but": []}]}, "Empty arrays"),
        ({"a": [{"anything-but": {"numeric": ["=", 1]}}]}, "Unsupported anything-but"),
        ({"a": [{"wildcard": "a**"}]}, "Consecutive wildcard"),
        ({"a": list(range(MAX_COMBINATIONS + 1))}, "too complex"),
    ],
)
def test_a_filter_that_says_nothing_clear_is_rejected(policy, reason):
    with pytest.raises(InvalidFilter, match=reason):
        compile_filter(json.dumps(policy), BODY)


def test_a_filter_must_be_json_and_of_attributes_flat():
    with pytest.raises(InvalidFilter, match="parse JSON"):
        compile_filter("{", BODY)
    with pytest.raises(InvalidFilter, match="nested"):
        compile_filter('{"a": {"b": ["c"]}}', ATTRIBUTES)


def test_each_filter_is_compiled_once():
    assert compile_filter('{"a": ["b"]}', BODY) is compile_filter('{"a": ["b"]}', BODY)


def test_a_body_of_deeply_nested_arrays_is_flattened():
    body: Any = "b"
    for _ in range(600):
        body = [body]

    assert matches_body({"a": ["b"]}, {"a": body})


def test_a_filter_that_is_nested_too_deeply_is_rejected():
    policy = '["b"]'
    for _ in range(900):
        policy = f'{{"a": {policy}}}'

    with pytest.raises(InvalidFilter, match="too complex"):
        compile_filter(policy, BODY)
