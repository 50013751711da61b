"""Flags that are derived from the fields of a record."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import Form, RecordFlags


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Parcel(msgspec.Struct):
    wait_ms: Annotated[int | None, Meta(description="How long to wait; null: for ever.")] = None
    max_body_bytes: Annotated[int, Meta(description="The largest body.")] = 10
    count: Annotated[int, Meta(description="How many.")] = 1
    due_at: Annotated[int | str | None, Meta(description="When, unless wait_ms is given.")] = None
    size: Annotated[Size, Meta(description="Its size.")] = Size.SMALL
    tags: Annotated[tuple[str, ...], Meta(description="Its tags.")] = ()
    labels: Annotated[dict[str, str], Meta(description="Its labels.")] = {}
    is_urgent: Annotated[bool, Meta(description="Whether it is urgent.")] = False
    to: Annotated[str | None, Meta(description="The receiver.")] = None


FIELDS = "wait_ms max_body_bytes count due_at size tags:tag labels:label is_urgent to"


def values(flags: RecordFlags, *words: str) -> dict[str, Any]:
    return flags.values(parse(flags, *words))


def parse(flags: RecordFlags, *words: str) -> Namespace:
    parser = Parser("test", {})
    flags.add(parser)
    return parser.read(words)


def test_only_the_given_fields_have_values():
    assert values(RecordFlags(Parcel, FIELDS)) == {}
    assert values(RecordFlags(Parcel, FIELDS), "--count", "0") == {"count": 0}


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("--wait 5m", "wait_ms", 300_000),
        ("--max-body 1KiB", "max_body_bytes", 1_024),
        ("--due-at 2030-01-01", "due_at", datetime(2030, 1, 1, tzinfo=UTC)),
        ("--size large", "size", Size.LARGE),
        ("--tag a --tag b", "tags", ("a", "b")),
        ("--label a=b --label c=d", "labels", {"a": "b", "c": "d"}),
        ("--urgent", "is_urgent", True),
        ("--to none", "to", "none"),
    ],
)
def test_the_type_of_a_field_determines_how_its_flag_is_parsed(words, field, value):
    assert values(RecordFlags(Parcel, FIELDS), *words.split()) == {field: value}


@pytest.mark.parametrize("words", ["--size huge", "--wait soon", "--count one", "--label a"])
def test_an_invalid_value_is_a_usage_error(words):
    with pytest.raises(UsageError):
        parse(RecordFlags(Parcel, FIELDS), *words.split())


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("--wait none", "wait_ms", None),
        ("--to none", "to", None),
        ("--label none", "labels", {}),
        ("--urgent no", "is_urgent", False),
        ("--urgent yes", "is_urgent", True),
    ],
)
def test_a_patch_can_unset_fields_and_turn_switches_off(words, field, value):
    assert values(RecordFlags(Parcel, FIELDS, is_patch=True), *words.split()) == {field: value}


def test_a_form_parses_what_the_type_does_not_describe():
    flags = RecordFlags(Parcel, "count", forms={"count": Form("DOZENS", lambda t: 12 * int(t))})

    assert values(flags, "--count", "2") == {"count": 24}


def test_the_help_comes_from_the_descriptions():
    parser = Parser("test", {})
    parser.summary = "test"
    RecordFlags(Parcel, FIELDS, texts={"to": "who gets it"}).add(parser)

    text = " ".join(parser.format_help().split())

    assert "--wait DURATION how long to wait; default: for ever [PENSTOCK_TEST_WAIT]" in text
    assert "--max-body SIZE the largest body; default 10" in text
    assert "when, unless --wait is given" in text
    assert "--size SIZE its size; one of small, large; default small" in text
    assert "--tag TAG its tags; may be repeated" in text
    assert "--to TO who gets it" in text
