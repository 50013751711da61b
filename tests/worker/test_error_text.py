"""The text that is stored for an exception."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from pathlib import Path

import pytest

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.queue.queue import check_name
from penstock.worker.error_text import error_text

DEEP = 30


def test_the_error_is_reported_with_its_place_innermost_first():
    def inner():
        raise ValueError("no such\nthing")

    try:
        inner()
    except ValueError as error:
        text = error_text(error)

    first, _second, place, *_ = text.splitlines()
    assert first == "ValueError: no such"
    assert "in inner" in place


def test_an_error_of_our_own_is_reported_with_its_places():
    with pytest.raises(InvalidRequest) as caught:
        check_name("not/a/name")
    ours = caught.tb.tb_next  # as if the worker had called it

    text = error_text(caught.value.with_traceback(ours))

    assert "in check_name" in text.splitlines()[1]


def test_a_syntax_error_is_reported_with_its_place():
    try:
        compile("one\ndef f(:", "jobs.py", "exec")
    except SyntaxError as error:
        text = error_text(error)

    assert text.splitlines()[:2] == ["SyntaxError: invalid syntax", "  at jobs.py:2"]


def test_a_very_long_error_is_cut_to_the_length_that_is_stored() -> None:
    text = error_text(ValueError("x" * 20_000_000))

    assert len(text) == DEFAULT_LIMITS.max_error_chars
    assert text.startswith("ValueError: xxx")


def test_the_source_line_is_shown_beside_its_place():
    try:
        int("five")
    except ValueError as error:
        [_, place] = error_text(error).splitlines()

    assert place.endswith('in test_the_source_line_is_shown_beside_its_place: int("five")')


def test_frames_of_the_application_are_kept_and_those_of_libraries_cut_in_the_middle():
    class Broken:
        """Its error passes through many frames of the standard library."""

    nested: object = Broken()
    for _ in range(DEEP):
        nested = [nested]

    def handler():
        json.JSONEncoder(default=None, indent=1).encode(nested)

    try:
        handler()
    except TypeError as error:
        lines = error_text(error).splitlines()

    assert any("in handler: json.JSONEncoder" in line for line in lines)
    assert any("more frames of libraries" in line for line in lines)
    assert "json" in lines[1]  # where it was raised
    assert len(lines) < 12


def test_an_application_that_is_installed_beside_its_libraries_keeps_its_frames(tmp_path: Path):
    home = tmp_path / "site-packages" / "shop"
    home.mkdir(parents=True)
    file = home / "jobs.py"
    calls = "".join(f"def f{n}(): f{n + 1}()\n" for n in range(9))
    file.write_text(f"{calls}def f9(): raise ValueError('no')\n")
    module = types.ModuleType("shop")
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)

    with pytest.raises(ValueError, match="no") as caught:
        module.f0()
    text = error_text(caught.value.with_traceback(caught.tb.tb_next))

    assert [f"in f{n}:" in text for n in range(10)] == [True] * 10


def test_causes_and_contexts_are_reported():
    def parse():
        try:
            dict[str, int]()["price"]
        except KeyError as error:
            raise ValueError("no price") from error

    def bill():
        try:
            parse()
        except ValueError:
            raise RuntimeError("no bill")  # noqa: B904

    try:
        bill()
    except RuntimeError as error:
        heads = [line for line in error_text(error).splitlines() if not line.startswith("  ")]

    assert heads == [
        "RuntimeError: no bill",
        "while handling ValueError: no price",
        "caused by KeyError: 'price'",
    ]


def test_a_context_that_was_suppressed_is_not_part_of_the_text():
    def handler():
        try:
            int("five")
        except ValueError:
            raise RuntimeError("no") from None

    with pytest.raises(RuntimeError) as caught:
        handler()

    assert "while handling" not in error_text(caught.value)


def test_members_of_a_group_are_reported_with_their_places():
    async def find():
        raise ValueError("customer 17 has no address")

    async def handler():
        async with asyncio.TaskGroup() as group:
            group.create_task(find())

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(handler())
    text = error_text(caught.value)

    assert "member 1 of 1: ValueError: customer 17 has no address\n" in text
    assert "in find: raise ValueError" in text


def test_the_text_of_a_large_exception_group_has_some_of_its_members():
    group = ExceptionGroup("many", [ValueError(f"no {n}") for n in range(50)])

    lines = error_text(group).splitlines()

    assert lines[-1] == "and 45 more members"
    assert "member 5 of 50: ValueError: no 4" in lines


def test_notes_are_listed_below_the_error():
    error = ValueError("no")
    error.add_note("customer 17")

    assert error_text(error).splitlines() == ["ValueError: no", "  note: customer 17"]


def test_errors_that_cause_each_other_come_to_an_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first

    assert error_text(first).splitlines() == ["ValueError: first", "caused by ValueError: second"]


def test_a_deep_recursion_keeps_both_ends_within_what_is_kept():
    def fall(depth: int) -> None:
        if depth == 0:
            raise ValueError("the bottom")
        fall(depth - 1)

    def handler() -> None:
        fall(sys.getrecursionlimit() // 2)

    try:
        handler()
    except ValueError as error:
        text = error_text(error)

    assert len(text) <= DEFAULT_LIMITS.max_error_chars
    assert 'in fall: raise ValueError("the bottom")' in text
    assert "in handler: fall(" in text
    assert "more frames" in text


def test_an_error_whose_text_cannot_be_rendered_is_still_reported():
    class Broken(Exception):
        def __str__(self) -> str:
            raise SystemExit("never")

    assert error_text(Broken()).endswith("Broken: <exception str() failed>")
