"""The pages for people who change the code name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.\w+|/)?)`", PAGE + CONTRIBUTING)))


def test_the_pages_name_files() -> None:
    assert len(PATHS) > 20


@pytest.mark.parametrize("path", PATHS)
def test_each_named_path_exists(path: str) -> None:
    is_outside = path.startswith(("tests/", "docs/", "src/"))
    root = ROOT if is_outside else ROOT / "src" / "penstock"

    assert (root / path).exists()


def test_the_layers_are_those_of_import_linter() -> None:
    layers = (ROOT / "pyproject.toml").read_text().partition("layers = [")[2].partition("]")[0]
    checked = set(re.findall(r"\((\w+)\)", layers))

    drawing = PAGE.partition("## Layers")[2].partition("Three rules")[0]

    assert {name for name in checked if not re.search(rf"\b{name}\b", drawing)} == set()
