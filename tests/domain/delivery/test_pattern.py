"""Users' patterns are matched in bounded time."""

from __future__ import annotations

import pytest

from penstock.domain.delivery.pattern import InvalidPattern, Pattern
from penstock.domain.errors import InvalidRequest

MANY = 20_000


@pytest.mark.parametrize("text", ["/(a+)+b", "/(a|aa)+b", "/(a*)*b", "/([a-z]+)*[0-9]"])
def test_nested_repetitions_take_no_longer_than_others(text: str) -> None:
    assert Pattern(text).fullmatch("/" + "a" * MANY) is None


@pytest.mark.parametrize("text", [r"/(?!x)(a|aa)+[0-9]", r"/(a|aa)+\1[0-9]"])
def test_a_pattern_for_the_backtracking_engine_ends_at_a_deadline(text: str) -> None:
    with pytest.raises(InvalidRequest, match="within 25 ms"):
        Pattern(text).fullmatch("/" + "a" * 40)


@pytest.mark.parametrize(
    ("text", "matched", "groups"),
    [
        (r"/a/(.*)", "/a/b?c=1", ("/a/b?c=1", "b?c=1")),
        (r"/a(/x)?", "/a", ("/a", "")),
        (r"/(?<name>[^/]+)/(?P<other>.*)", "/é/ü", ("/é/ü", "é", "ü")),
        (r"/(?!admin)([^/]+)/.*", "/shop/1", ("/shop/1", "shop")),
        (r"/(?<!x)(a)\1", "/aa", ("/aa", "a")),
        (r"(?i)/SHOP/(\d++)", "/shop/17", ("/shop/17", "17")),
        (r"/\Qa.b\E", "/a.b", ("/a.b",)),
        (r"/a|/b", "/b", ("/b",)),
        (r"/ab?", "/a", ("/a",)),
        (r"/ab*c", "/ac", ("/ac",)),
        (r"/ab{0}", "/a", ("/a",)),
        ("", "", ("",)),
    ],
)
def test_both_engines_return_the_same_groups(
    text: str, matched: str, groups: tuple[str, ...]
) -> None:
    pattern = Pattern(text)

    assert pattern.fullmatch(matched) == groups
    assert pattern.groups == len(groups) - 1
    assert pattern.fullmatch(matched + "\n/no") is None


@pytest.mark.parametrize("text", ["/a(", "/[", r"/\C", "*", "(" * 5_000, "/(?P<a>x)(?P<a"])
def test_a_text_that_no_engine_can_compile_is_rejected(text: str) -> None:
    with pytest.raises(InvalidPattern):
        Pattern(text)


def test_half_a_character_matches_nothing() -> None:
    assert Pattern("/(.*)").fullmatch("/\ud800") is None
