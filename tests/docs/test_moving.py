"""The examples of the page about moving from other frameworks run unchanged."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.docs.snippets import ROOT
from tests.support.waiting import eventually

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


def test_the_example_of_a_result_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It waits for a worker, which begins when the job is enqueued."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}

    def work() -> None:
        eventually(lambda: "handle" in names)
        names["app"].worker(queues=["default"], burst=True).run()

    worker = threading.Thread(target=work)
    worker.start()
    [code] = re.findall(r"<!-- results -->\n```python\n(.*?)```", _TEXT, re.DOTALL)
    exec(compile(EXAMPLES[0] + code, "moving.md", "exec"), names)
    worker.join()

    assert capsys.readouterr().out == "4\n"
    names["app"].close()


def test_all_examples_run_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who tries one after the other uses one store."""
    monkeypatch.chdir(tmp_path)

    for code in EXAMPLES:
        names: dict[str, object] = {}
        exec(compile(code, "moving.md", "exec"), names)
        names["app"].close()  # type: ignore[attr-defined]
