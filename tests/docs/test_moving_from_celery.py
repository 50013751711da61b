"""The examples for people who move from Celery run in both systems and print what the page shows.

All examples of a system are one program, as a reader would collect them: a module that a worker
imports, without what enqueues.  Each test then runs the whole of one example, which enqueues.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from penstock import Penstock
from tests.docs.snippets import ROOT
from tests.edge.cli.workers.driver import WorkerProcess
from tests.support.redis_server import RedisServer
from tests.support.waiting import eventually

_TEXT = (ROOT / "docs" / "moving.md").read_text(encoding="utf-8")
_SECTION = _TEXT[_TEXT.index("## From Celery") : _TEXT.index("## From RQ")]
_BLOCK = r"<!-- {}: ([^\n]+) -->\n```python\n(.*?)```"
_FIRST = "jobs"  # the example in which the application is made

CELERY = dict(re.findall(_BLOCK.format("celery"), _SECTION, re.DOTALL))
OURS = {_FIRST: re.findall(r"<!-- moving -->\n```python\n(.*?)```", _SECTION, re.DOTALL)[0]}
OURS |= dict(re.findall(_BLOCK.format("penstock"), _SECTION, re.DOTALL))

FILES = {"callbacks": "complaint.txt"}  # what jobs of an example write
MODULE = "shop"


class System:
    """A folder with the program, and its worker."""

    def __init__(self, folder: Path, examples: dict[str, str], address: tuple[str, str]) -> None:
        self.folder = folder
        self._examples = {name: code.replace(*address) for name, code in examples.items()}
        self._module = types.ModuleType(MODULE)  # the jobs' names contain the module's
        program = "\n".join(map(declarations, self._examples.values()))
        (folder / f"{MODULE}.py").write_text(program)

    def run(self, example: str) -> None:
        """Run it behind the declarations of those before it."""
        names = list(self._examples)
        before = names[: names.index(example)]
        program = "\n".join(declarations(self._examples[name]) for name in before)
        with patch.dict(sys.modules, {MODULE: self._module}):  # dataclasses look it up
            for code in (program, self._examples[example]):
                exec(compile(code, f"{example}.py", "exec"), vars(self._module))

    @property
    def app(self) -> Any:
        return self._module.__dict__["app"]


@pytest.fixture(scope="module")
def celery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("celery")
    with RedisServer() as redis:
        system = System(folder, CELERY, ("redis://localhost", redis.url))
        log = folder / "worker.log"
        words = ["--concurrency", "2", "--without-gossip", "--without-mingle"]
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", MODULE, "worker", *words],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(folder)},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield system
        finally:
            print(log.read_text(errors="replace")[-6_000:])
            os.killpg(worker.pid, 9)
            worker.wait()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("penstock")
    url = f"sqlite:///{folder}/jobs.db"
    system = System(folder, OURS, ("sqlite:///jobs.db", url))
    log = folder / "worker.log"
    with WorkerProcess(url, log, "--slots", "4", app=f"{MODULE}:app", folder=folder):
        yield system
        print(log.read_text(errors="replace")[-6_000:])
    system.app.close()


def test_each_example_is_there_for_both() -> None:
    assert list(CELERY) == list(OURS)


@pytest.mark.parametrize("example", CELERY)
def test_an_example_prints_what_the_page_shows_in_celery(
    example: str, celery: System, capsys: pytest.CaptureFixture[str]
) -> None:
    celery.run(example)

    assert capsys.readouterr().out.splitlines() == comments(CELERY[example])
    wait_for_file(example, celery)


@pytest.mark.parametrize("example", OURS)
def test_an_example_prints_what_the_page_shows_in_penstock(
    example: str, ours: System, capsys: pytest.CaptureFixture[str]
) -> None:
    ours.run(example)

    assert capsys.readouterr().out.splitlines() == comments(OURS[example])
    wait_for_file(example, ours)


def test_the_schedule_of_celery_beat_runs_its_task(celery: System) -> None:
    from celery.beat import Scheduler

    celery.run("beat")
    scheduler = Scheduler(celery.app)
    scheduler.setup_schedule()

    scheduler.apply_entry(scheduler.schedule["nightly"])

    eventually((celery.folder / "nightly.txt").exists)


def test_the_schedule_of_penstock_runs_its_job(ours: System) -> None:
    ours.run("beat")
    app: Penstock = ours.app

    app.recurring.run("nightly")

    eventually((ours.folder / "nightly.txt").exists)


def declarations(code: str) -> str:
    """A module without the statements that enqueue: what a worker imports."""
    module = ast.parse(code)
    kept = [node for node in module.body if _declares(node)]
    return ast.unparse(ast.Module(body=kept, type_ignores=[]))


def _declares(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    return isinstance(node, ast.ClassDef) or ast.unparse(node).startswith(
        ("app = ", "app.conf.", "app.queue(")
    )


def comments(code: str) -> list[str]:
    """What the comments behind the calls of `print` show."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)


def wait_for_file(example: str, system: System) -> None:
    if example in FILES:
        eventually((system.folder / FILES[example]).exists)
