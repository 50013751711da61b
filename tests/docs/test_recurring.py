"""The page about recurring work, tried as it stands on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.testing import Kit
from tests.docs.snippets import ROOT, marked
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
    penstock = f"{sys.executable} -m penstock "
    script = re.sub(r"^penstock ", penstock, marked(PAGE, "recurring.sh"), flags=re.MULTILINE)

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PENSTOCK_SERVER": server.url, "PYTHONPATH": str(ROOT / "src")},
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.count("02:30") >= 3, "the firings, in the time of their zone"
