"""`penstock worker --reload` and `penstock dev`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.workers.dev import served_at
from penstock.settings import Settings
from tests.edge.cli.workers.driver import ROOT
from tests.edge.cli.workers.job_lookup import PATIENCE_S
from tests.support.waiting import eventually

JOBS = """
from pathlib import Path
from penstock import Penstock

app = Penstock("sqlite:///shop.db")


@app.job(queue="shop")
def note(text: str) -> None:
    with Path("seen").open("a") as seen:
        seen.write(f"VERSION {text}\\n")
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    file = tmp_path / "reloaded.py"
    file.write_text(JOBS.replace("VERSION", "first"))
    return file


def test_a_worker_runs_changed_files_and_survives_those_that_cannot_be_imported(
    jobs, tmp_path, make_worker
):
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    make_worker(url, "--reload", app="reloaded:app", folder=tmp_path)
    with Penstock(url) as app:
        log, seen = tmp_path / "worker.log", tmp_path / "seen"
        app.enqueue("note", {"text": "a"}, queue="shop")
        eventually(seen.exists, within_s=PATIENCE_S)

        jobs.write_text("import no_such_module")
        eventually(lambda: "waiting for a change" in log.read_text(), within_s=PATIENCE_S)
        app.enqueue("note", {"text": "b"}, queue="shop")
        jobs.write_text(JOBS.replace("VERSION", "second"))
        eventually(lambda: len(seen.read_text().splitlines()) == 2, within_s=PATIENCE_S)

    assert seen.read_text() == "first a\nsecond b\n"
    text = log.read_text()
    assert 'reloaded.py", line 1, in <module>\n    import no_such_module\n' in text
    assert "penstock/worker" not in text  # none of our frames


def test_dev_runs_a_server_with_the_console_and_a_worker_on_the_applications_store(jobs, tmp_path):
    command = [sys.executable, "-m", "penstock", "dev", "reloaded:app", "--port", "0", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    dev = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert dev.stdout is not None
        line = json.loads(dev.stdout.readline())["ready"]
        console = line.partition("console ")[2].partition(",")[0]
        with Penstock(f"sqlite:///{tmp_path / 'shop.db'}") as app:
            app.enqueue("note", {"text": "a"}, queue="shop")
            eventually((tmp_path / "seen").exists, within_s=PATIENCE_S)
        with urllib.request.urlopen(console) as page:
            assert page.status == 200
    finally:
        dev.send_signal(signal.SIGINT)
        dev.wait(PATIENCE_S)


def test_dev_serves_where_the_application_expects_its_server():
    settings = served_at(Settings(), "http://localhost:8000")
    assert (settings.server.host, settings.server.port) == ("localhost", 8000)
    assert served_at(Settings(), "sqlite:///jobs.db").store_url == "sqlite:///jobs.db"
    with pytest.raises(UsageError, match="starts one on this machine"):
        served_at(Settings(), "https://broker.example.org")
