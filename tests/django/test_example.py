"""The Django project runs: its tasks commit with its rows, a worker runs them, results are read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.architecture.source import ROOT

SET_UP = "import django; django.setup()\n"
RETRY_NOW = """
import sys
from shop.tasks import audit

audit.get_backend().app.jobs.reschedule(sys.argv[1], delay="1ms")
"""
PROGRAM = """
import json
from django.core.management import call_command
from django.db import transaction
from django.test import Client

call_command("migrate", verbosity=0)

from shop.models import Order
from shop.tasks import audit, confirm

client = Client(raise_request_exception=False)
first = client.post("/orders", {"name": "books"}).json()
second = client.post("/orders", {"name": "books"})  # a second order of that name is rejected
try:
    with transaction.atomic():
        rolled_back = confirm.enqueue(first["order"]).id
        raise RuntimeError
except RuntimeError:
    pass
retried = audit.enqueue(day="monday").id
print(json.dumps({
    "first": first["task"], "second": second.status_code, "rolled_back": rolled_back,
    "retried": retried, "before": client.get(f"/tasks/{first['task']}").json(),
}))
"""
READ = """
import json, sys
from django.test import Client
from shop.models import Order
from shop.tasks import audit

first, rolled_back, retried = sys.argv[1:]
client, result = Client(), audit.get_result(retried)
print(json.dumps({
    "first": client.get(f"/tasks/{first}").json(),
    "rolled_back": client.get(f"/tasks/{rolled_back}").status_code,
    "confirmed": Order.objects.get().is_confirmed,
    "retried": [result.status, result.return_value, result.attempts, result.kwargs],
    "errors": [[one.exception_class_path, "monday" in one.traceback] for one in result.errors],
}))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the project, and its environment."""
    folder = tmp_path / "django"
    shutil.copytree(ROOT / "examples" / "django", folder)
    own = {"SHOP_FILE": str(tmp_path / "shop.db"), "PYTHONPATH": str(folder)}
    if request.param == "postgres":
        parts = urlsplit(request.getfixturevalue("postgres_url"))
        query = dict(pair.split("=") for pair in parts.query.split("&") if pair)
        own["SHOP_POSTGRES"] = parts.hostname or query["host"].replace("%2F", "/")
        own["SHOP_POSTGRES_PORT"] = str(parts.port or query.get("port", ""))
        own["SHOP_POSTGRES_USER"] = parts.username or ""
        own["SHOP_POSTGRES_NAME"] = parts.path.removeprefix("/")
    return folder, os.environ | own | {"DJANGO_SETTINGS_MODULE": "shop.settings"}


def run(project: tuple[Path, dict[str, str]], *words: str) -> str:
    folder, environment = project
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_tasks_commit_with_their_rows_and_results_are_read(
    project: tuple[Path, dict[str, str]],
) -> None:
    made = json.loads(run(project, "-c", SET_UP + PROGRAM))
    run(project, "manage.py", "penstock_worker", "--burst")
    run(project, "-c", SET_UP + RETRY_NOW, made["retried"])
    run(project, "manage.py", "penstock_worker", "--burst", "--slots", "1")

    ids = [made[name] for name in ("first", "rolled_back", "retried")]
    read = json.loads(run(project, "-c", SET_UP + READ, *ids))

    assert made["second"] == 500
    assert made["before"] == {"status": "READY", "attempts": 0, "result": None}
    assert read["first"] == {"status": "SUCCESSFUL", "attempts": 1, "result": "confirmed books"}
    assert (read["confirmed"], read["rolled_back"]) == (True, 404)
    assert read["retried"] == ["SUCCESSFUL", 1, 2, {"day": "monday"}]
    assert read["errors"] == [["builtins.ValueError", True]]
