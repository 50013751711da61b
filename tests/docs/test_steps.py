"""The programs of the page about durable steps run."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from penstock.client.app import Penstock
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.step import MAX_STEPS, SIGNAL_KEPT_MS
from tests.client.jobs.driver import JobDriver
from tests.docs.snippets import ROOT, read_blocks

PAGE = "docs/steps.md"


def run(
    mark: str, folder: Path, monkeypatch: pytest.MonkeyPatch, url: str | None = None
) -> Penstock:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "page"}
    page = read_blocks(PAGE, mark)
    if url is not None:
        page = page.replace("sqlite:///shop.db", url)
    exec(compile(page, PAGE, "exec", dont_inherit=True), names)
    app = names["app"]
    assert isinstance(app, Penstock)
    return app


def verbs(app: Penstock, queue: str) -> list[str]:
    return [act.verb.value for act in JobDriver(app, app.clock, queue).run_due()]


def test_the_job_of_the_page_charges_waits_ships_and_sleeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: str
) -> None:
    app = run("steps", tmp_path, monkeypatch, store_url)

    assert verbs(app, "orders") == ["snooze"]
    [job] = app.jobs.list(queue="orders")
    names = [step.name for step in app.jobs.steps(job.id).steps]
    assert names == ["charge", "signal approved:17", "ship", "sleep"]
    app.close()


def test_the_transaction_of_the_page_commits_the_step_with_its_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = run("steps in a transaction", tmp_path, monkeypatch)

    assert verbs(app, "default") == ["complete"]
    [job] = app.jobs.list(state="done")
    assert [step.name for step in app.jobs.steps(job.id).steps] == ["insert"]
    with sqlite3.connect(tmp_path / "bookings.db") as connection:
        assert connection.execute("SELECT number FROM booking").fetchall() == [(17,)]
    app.close()


def test_the_agent_of_the_page_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = run("agents", tmp_path, monkeypatch)

    assert verbs(app, "agents") == ["complete"]
    [job] = app.jobs.list(state="done")
    steps = [step.name for step in app.jobs.steps(job.id).steps]
    assert [name.split()[:2] for name in steps] == [
        ["support", "model"],
        ["signal", "answer"],
        ["support", "ask_a_human"],
        ["support", "model#2"],
    ]
    app.close()


def test_the_limits_of_the_page_are_those_in_force() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")

    assert f"| steps of one job | {MAX_STEPS:,} |" in text
    assert f"`limits.max_step_bytes` ({DEFAULT_LIMITS.max_step_bytes // 1024} KiB)" in text
    assert SIGNAL_KEPT_MS == 7 * 86_400_000
    assert re.search(r"kept for seven days", text)
