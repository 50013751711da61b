"""The page on orchestration: its summary is the code's, and its programs act on each outcome.

The program for Airflow was also loaded and run with Airflow 3.3, which needs an environment of its
own; here its two decorators and exceptions stand in for it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock.pipeline.summary import RunSummary
from tests.docs.snippets import read_blocks

PAGE = "docs/orchestration.md"
SUMMARY = json.loads(read_blocks(PAGE, "summary"))
DONE = SUMMARY | {"status": "done", "code": None}
# Writes the summary of a run and ends as it would; the last argument is the file.
STAND_IN = """#!{python}
import os, sys
with open(os.environ["CALLS"], "a") as calls:
    print(*sys.argv[1:-1], file=calls)
if os.environ["SUMMARY"]:
    with open(sys.argv[-1], "w") as file:
        file.write(os.environ["SUMMARY"])
sys.exit(int(os.environ["CODE"]))
"""

SetExit = Callable[[dict[str, Any] | None, int], None]


@pytest.fixture
def set_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetExit:
    """Set the summary and the exit code of `penstock`."""
    program = tmp_path / "bin" / "penstock"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))

    def set_exit(summary: dict[str, Any] | None, code: int) -> None:
        monkeypatch.setenv("SUMMARY", "" if summary is None else json.dumps(summary))
        monkeypatch.setenv("CODE", str(code))

    return set_exit


def test_the_summary_of_the_page_is_one_of_the_code() -> None:
    decoded = msgspec.convert(SUMMARY, RunSummary)

    assert msgspec.to_builtins(decoded) == SUMMARY


@pytest.mark.slow
def test_the_asset_of_dagster_is_materialised_by_a_run_of_its_day(
    set_exit: SetExit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
    import dagster as dg

    program = _run(read_blocks(PAGE, "dagster"), "penstock_dagster", monkeypatch)
    asset = program.penstock_tables

    set_exit(DONE, 0)
    done = dg.materialize([asset], partition_key="2026-01-31")
    set_exit(SUMMARY, 1)
    refused = dg.materialize([asset], partition_key="2026-01-31", raise_on_error=False)
    set_exit(None, 2)
    invalid = dg.materialize([asset], partition_key="2026-01-31", raise_on_error=False)

    [made] = done.asset_materializations_for_node("penstock_tables")
    assert made.metadata["rows"].value == 54
    for failed in (refused, invalid):
        assert not failed.success
        assert "STEP_UP_FOR_RETRY" not in [event.event_type_value for event in failed.all_events]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["pipeline run --lake /lake --from 2026-01-31 --to 2026-01-31 --summary"] * 3
    dg.Definitions.validate_loadable(program.defs)


class _Skipped(Exception):
    pass


class _Failed(Exception):
    pass


def test_the_task_of_airflow_succeeds_is_skipped_fails_or_is_retried(
    set_exit: SetExit, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[Callable[[], Any]] = []

    def task(**options: Any) -> Callable[..., Any]:
        def add(function: Callable[[], Any]) -> Callable[[], None]:
            tasks.append(function)
            return lambda: None  # calling it only adds the task to the graph

        return add

    sdk = SimpleNamespace(dag=lambda **options: lambda function: function, task=task)
    errors = SimpleNamespace(AirflowFailException=_Failed, AirflowSkipException=_Skipped)
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    monkeypatch.setitem(sys.modules, "airflow.sdk.exceptions", errors)
    _run(read_blocks(PAGE, "airflow"), "penstock_airflow", monkeypatch)
    [run_pipeline] = tasks
    failed = SUMMARY | {"status": "failed", "message": "why", "jobs": []}

    set_exit(DONE, 0)
    assert run_pipeline() == {"quality": 1}
    for summary, code, expected, text in (
        (SUMMARY, 1, _Failed, "not loaded"),
        (failed | {"code": "lake_busy"}, 1, _Skipped, "why"),
        (failed | {"code": "spark_failed"}, 1, RuntimeError, r"why \(spark_failed\)"),
        (None, 2, _Failed, "invalid command line"),
        (None, 137, RuntimeError, r"killed \(code 137\)"),
    ):
        set_exit(summary, code)
        with pytest.raises(expected, match=text):
            run_pipeline()


def _run(source: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, PAGE, "exec", dont_inherit=True), module.__dict__)
    return module
