"""The examples of the page about recurring work run unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.testing import Kit
from tests.docs.snippets import read_blocks, run_script
from tests.edge.conftest import MakeProcess

PAGE = "docs/recurring.md"


def test_the_job_of_the_page_recurs(tmp_path: Path) -> None:
    program: dict[str, Any] = {"__name__": "reports"}
    exec(compile(read_blocks(PAGE, "recurring.py"), "reports.py", "exec"), program)

    with Kit(program["app"]) as kit:
        kit.advance("1d")
        [run] = kit.run()

    assert (run.kind, run.outcome) == (program["nightly_report"].kind, "done")


def test_the_commands_of_the_page_work(make_process: MakeProcess) -> None:
    server = make_process()
    shown = run_script(server, read_blocks(PAGE, "recurring.sh"))

    assert shown.count("02:30") >= 3, "the firings, in the time of their zone"
