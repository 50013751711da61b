"""Every program on the pages about jobs runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.client.jobs.job_spec import JobSettings
from penstock.client.jobs.options import JobOptions
from tests.docs.snippets import ROOT, read_blocks


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


WORK = """
from tests.client.jobs.driver import JobDriver
for queue in app.queues:
    driver = JobDriver(app, app.clock, queue)
    for act in driver.run_due():
        print(queue, act.verb.value, act.text)
app.close()
"""


def test_the_jobs_of_the_page_are_enqueued_and_run(tmp_path):
    work = WORK.replace("app.close()", "print('total:', handle.result('30s'))\napp.close()")
    shown = run(read_blocks("docs/jobs.md", "jobs") + work, tmp_path)

    assert "total: 9.99" in shown
    assert "mail complete None" in shown
    assert "default complete None" in shown
    assert "fail" not in shown
    assert "begin send_mail" in shown


def test_the_transactions_of_the_page_work(tmp_path):
    shown = run(read_blocks("docs/jobs.md", "transactions") + WORK_IN_TX, tmp_path)

    assert shown.split() == ["fail", "LeaseLost", "[]"]


# What completed itself is over before the worker acts.
WORK_IN_TX = """
from tests.client.jobs.driver import JobDriver
driver = JobDriver(app, app.clock, "default")
[work] = driver.claim()
act = driver.act_of(work)
[answer] = driver.act(act)
print(act.verb.value, type(answer).__name__, connection.execute("SELECT * FROM orders").fetchall())
app.close()
"""


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("README.md", "to ada@example.org"),
        ("docs/quick-start.md", "to ada@example.org: Your invoice"),
    ],
)
def test_the_first_job_is_ten_lines_and_works(page, printed, tmp_path):
    program = read_blocks(page, "jobs.py")
    (tmp_path / "jobs.py").write_text(program)

    run("import runpy; runpy.run_path('jobs.py', run_name='__main__')", tmp_path)
    shown = run("from jobs import app\n" + WORK, tmp_path)

    assert shown.splitlines()[0] == printed
    assert len([line for line in program.splitlines() if line.strip()]) <= 10


def _first_cells(heading: str) -> set[str]:
    page = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_page_lists_all_settings_of_a_job_and_all_options():
    assert _first_cells("Options of `@app.job(…)`") == {*JobSettings.__annotations__, "batch"}
    assert _first_cells("Enqueue") == set(JobOptions.__annotations__)
