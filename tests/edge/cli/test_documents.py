"""Generated documents equal the code."""

from __future__ import annotations

from penstock.edge.cli.reference import page, with_table
from tests.edge.process import ROOT


def test_the_reference_of_the_command_line_equals_its_help():
    written = (ROOT / "docs/cli.md").read_text(encoding="utf-8")

    assert written == page(), "python -m penstock.edge.cli.reference cli > docs/cli.md"


def test_the_table_of_settings_equals_the_settings():
    written = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")

    hint = "python -m penstock.edge.cli.reference configuration docs/configuration.md"
    assert written == with_table(written), hint
    assert "| `server.port` |" in written


def test_help_does_not_depend_on_the_environment(monkeypatch):
    before = page()
    monkeypatch.setenv("PENSTOCK_SEND_BATCH", "7")
    monkeypatch.setenv("COLUMNS", "40")

    assert page() == before
