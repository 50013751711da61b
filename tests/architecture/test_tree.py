"""Tests mirror the tree; the suites that do not are in a table of CONTRIBUTING.md."""

import re
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

SUITES = frozenset(
    re.findall(r"^\| `tests/([\w/]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
)


def test_every_folder_of_tests_mirrors_one_of_the_package_or_is_a_suite_of_the_table():
    assert strays(ROOT / "tests", PACKAGE, SUITES) == []


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_every_suite_of_the_table_exists_and_mirrors_nothing(suite):
    assert (ROOT / "tests" / suite).is_dir()
    assert not (PACKAGE / suite).exists()


def test_a_planted_folder_is_found_unless_it_is_a_suite_or_below_one(tmp_path):
    for place in ("src/store", "tests/store/damage", "tests/faults/disk", "tests/store/faults"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "test_it.py").touch()

    found = strays(tmp_path / "tests", tmp_path / "src", {"faults"})

    assert found == ["store/damage", "store/faults"]


def strays(tests: Path, package: Path, suites: set[str] | frozenset[str]) -> list[str]:
    places = {path.parent.relative_to(tests) for path in tests.rglob("*.py")}
    return sorted(
        place.as_posix()
        for place in places
        if not (package / place).is_dir()
        and not suites & {place.as_posix(), *(above.as_posix() for above in place.parents)}
    )
