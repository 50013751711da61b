"""Each promise of docs/durability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.domain.errors import StoreDamaged, StoreUnavailable
from penstock.store.damage.log_damage import MAX_UNSYNCED, SYNC_AFTER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/durability.md").read_text(encoding="utf-8")


def test_the_tests_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`(tests/[\w/]+(?:\.py)?)`", PAGE))

    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_section_on_a_promise_names_a_test() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]

    assert [part.splitlines()[0] for part in sections if "`tests/" not in part] == []


def test_numbers_and_codes_are_those_of_the_code() -> None:
    assert f"every {SYNC_AFTER + 1}th such transaction" in PAGE
    assert f"more than {MAX_UNSYNCED} commits follow" in PAGE
    assert f"`{StoreDamaged.code}`" in PAGE
    assert f"`{StoreUnavailable.code}`" in PAGE
