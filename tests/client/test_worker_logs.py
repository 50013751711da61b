"""A worker's log: lines about a job name it, and its errors are logged in full."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from penstock import Penstock, current
from penstock.testing import Kit

pytestmark = pytest.mark.no_store("log")

PROGRAM = """
import asyncio, logging, sys
from penstock import Penstock
from penstock.supervision.logs import name_jobs, set_up_logs
from penstock.testing import Kit

set_up_logs("info", sys.argv[1])
app = Penstock("sqlite:///never-opened.db")
name_jobs(app.running_job)
log = logging.getLogger("shop")

@app.job(kind="mail")
def mail():
    log.info("sent", extra={"job": "of the application"})

@app.job(kind="index")
async def index():
    await asyncio.create_task(deep())

async def deep():
    await asyncio.to_thread(log.info, "indexed")

with Kit(app) as kit:
    print(mail.enqueue().id, index.enqueue().id)
    kit.run()
log.info("over")
try:
    raise ValueError("caf\\udce9")
except ValueError:
    log.exception("caf\\udce9")
"""


def run(form: str) -> tuple[list[str], list[str]]:
    """The ids of the two jobs, and the lines of the log."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, form], capture_output=True, text=True, check=True
    )
    return done.stdout.split(), done.stderr.splitlines()


def test_lines_for_people_name_the_job_that_wrote_them():
    [mail, index], lines = run("text")

    assert [line.partition(" shop")[2] for line in lines if " shop" in line] == [
        f" job={mail} kind=mail: sent",
        f" job={index} kind=index: indexed",
        ": over",
        r": caf\udce9",
    ]


def test_lines_for_programs_name_the_job_that_wrote_them():
    [mail, index], lines = run("json")

    named = [msgspec.json.decode(line) for line in lines]
    assert [(line.get("job"), line.get("kind"), line["text"]) for line in named] == [
        (mail, "mail", "sent"),
        (index, "index", "indexed"),
        (None, None, "over"),
        (None, None, "caf\N{REPLACEMENT CHARACTER}"),
    ]
    assert named[-1]["error"].endswith("ValueError: caf\N{REPLACEMENT CHARACTER}")


def test_the_whole_traceback_of_a_failure_is_logged_with_its_job(caplog: pytest.LogCaptureFixture):
    app = Penstock("sqlite:///never-opened.db")

    def fall(depth: int) -> None:
        if depth:
            fall(depth - 1)
        else:
            raise KeyError(depth)

    @app.job(attempts=1)
    def fail() -> None:
        try:
            fall(100)
        except KeyError as error:
            raise ValueError("no") from error

    with Kit(app) as kit, caplog.at_level(logging.WARNING):
        sent = fail.enqueue()
        kit.run(raises=False)

    assert f"job={sent.id} kind=fail" in caplog.text
    assert "KeyError: 0" in caplog.text
    assert caplog.text.rstrip().endswith("ValueError: no")


def test_an_error_that_a_job_raises_after_completing_itself_is_logged(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    app = Penstock("sqlite:///never-opened.db")
    file = tmp_path / "shop.db"

    @app.job
    def ship() -> None:
        with sqlite3.connect(file) as own:
            current().complete(tx=own)
        own.close()
        raise ValueError("too late")

    url = f"sqlite:///{file}?checksums=off"
    with Kit(app, url=url) as kit, caplog.at_level(logging.WARNING):
        ship.enqueue()
        kit.run(raises=False)
        [ended] = kit.ended(ship)

    assert ended.state == "done"
    assert "ValueError: too late" in caplog.text
