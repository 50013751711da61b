"""The tables of the page about security agree with the code (operations: test_rights.py)."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.domain.access.api_key import Role, Scope
from penstock.edge.server.bounds import MAX_HEADER_BYTES, MAX_HEADERS, MAX_UNANSWERED
from penstock.edge.server.traffic import MAX_BUFFERED_BYTES
from penstock.outbound.secret_file import MIN_BYTES
from penstock.settings.catalogue import catalogue

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
_GROUPS = "store|server|auth|aweq|sqs|push|console|limits|archive"
_SETTING = re.compile(rf"`((?:{_GROUPS})\.\w+)(?: = \w+)?`")
_DEFAULT = re.compile(rf"`((?:{_GROUPS})\.\w+)` \(([\d,]+) ?(s|MiB|hours)?\)")
_UNITS = {"": 1, "s": 1_000, "MiB": 1024 * 1024, "hours": 3_600_000}


def read_section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def read_first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def test_every_role_and_every_scope_is_explained() -> None:
    assert read_first_cells(read_section("Keys and roles")) == {*map(str, Role), *map(str, Scope)}


def test_settings_that_are_named_exist() -> None:
    named = set(_SETTING.findall(PAGE))

    assert named >= {"auth.secret_file", "server.trusted_proxies", "aweq.allow_origin"}
    assert named <= set(catalogue())


def test_defaults_are_those_of_the_code() -> None:
    written = {
        name: int(n.replace(",", "")) * _UNITS[unit] for name, n, unit in _DEFAULT.findall(PAGE)
    }

    assert len(written) >= 8
    assert written == {name: catalogue()[name].default for name in written}


def test_limits_that_cannot_be_set_are_those_of_the_code() -> None:
    limits = read_section("Limits")

    assert f"| {MAX_HEADER_BYTES // 1024} KiB and {MAX_HEADERS} lines" in limits
    assert f"| {MAX_UNANSWERED:,} |" in limits
    assert f"| {MAX_BUFFERED_BYTES // 1024 // 1024} MiB |" in limits


def test_the_command_makes_a_secret_that_is_long_enough() -> None:
    [digits] = re.findall(r"openssl rand -hex (\d+)", PAGE)

    assert 2 * int(digits) >= MIN_BYTES
