"""The examples of the page about moving from other frameworks run unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT

_TEXT = (ROOT / "docs" / "moving.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"<!-- moving -->\n```python\n(.*?)```", _TEXT, re.DOTALL)


def test_there_is_an_example_for_each_framework() -> None:
    assert len(EXAMPLES) == _TEXT.count("\n## From ")


@pytest.mark.parametrize("code", EXAMPLES)
def test_each_example_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    names: dict[str, object] = {}
    exec(compile(code, "moving.md", "exec"), names)

    app = names["app"]
    assert (tmp_path / "jobs.db").exists()
    app.close()  # type: ignore[attr-defined]


def test_all_examples_run_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who tries one after the other uses one store."""
    monkeypatch.chdir(tmp_path)

    for code in EXAMPLES:
        names: dict[str, object] = {}
        exec(compile(code, "moving.md", "exec"), names)
        names["app"].close()  # type: ignore[attr-defined]
