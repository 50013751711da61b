"""The page about recurring work, tried as it stands on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.testing import Kit
from tests.docs.snippets import marked, run_script
from tests.edge.conftest import MakeProcess

PAGE = "docs/recurring.md"


def test_the_job_of_the_page_recurs(tmp_path: Path) -> None:
    program: dict[str, Any] = {"__name__": "reports"}
    exec(compile(marked(PAGE, "recurring.py"), "reports.py", "exec"), program)

    with Kit(program["app"]) as kit:
        kit.advance("1d")
        [run] = kit.run()

    assert (run.kind, run.outcome) == (program["nightly_report"].kind, "done")


def test_the_commands_of_the_page_work(make_process: MakeProcess) -> None:
    server = make_process()
    shown = run_script(server, marked(PAGE, "recurring.sh"))

    assert shown.count("02:30") >= 3, "the firings, in the time of their zone"
