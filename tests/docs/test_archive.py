"""The page on the lake lists the tables of domain/lake/layout.py."""

from __future__ import annotations

import re

from penstock.domain.lake import layout as lake
from tests.docs.snippets import ROOT

PAGE = ROOT / "docs" / "archive.md"


def test_the_tables_are_those_of_the_domain():
    section = PAGE.read_text(encoding="utf-8").partition("## Tables\n")[2]

    assert re.findall(r"^\| \[`(\w+)`\]", section, re.MULTILINE) == list(lake.TABLES)
