"""Who installs the wheel in a clean environment gets working programs, with each extra."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from penstock.version import __version__
from tests.packages.environments import CleanEnvironment
from tests.support.private_servers import free_port

JOBS = """
from penstock import Penstock

app = Penstock("sqlite:///data/penstock.db")


@app.job(queue="mail")
def send_mail(to: str) -> str:
    return f"to {to}"


if __name__ == "__main__":
    send_mail.enqueue("ada@example.org")
"""
INTERNAL = {"dev", "testpg", "bench"}  # extras for people who work on Penstock

Run = Callable[..., str]


@pytest.fixture(scope="module")
def worked(clean: CleanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an application whose job has run."""
    folder = tmp_path_factory.mktemp("worked")
    (folder / "jobs.py").write_text(JOBS)
    clean.run("python", "jobs.py", folder=folder)
    log = clean.run("penstock", "worker", "jobs:app", "--burst", folder=folder)
    (folder / "worker.log").write_text(log)
    return folder


@pytest.fixture
def run(
    clean: CleanEnvironment, worked: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Run:
    """Run a program of the environment with the extra that the test's name ends with."""
    extra = request.node.originalname.removeprefix("test_the_extra_").partition("_")[0]
    folder = tmp_path / "worked"
    shutil.copytree(worked, folder)
    return lambda *command: clean.run(*command, extra=extra, folder=folder)


def test_a_job_runs_and_the_server_shows_it(clean: CleanEnvironment, worked: Path) -> None:
    command = [str(clean.bin / "penstock"), "serve", "--port", "0", "--json"]
    with subprocess.Popen(
        command, cwd=worked, env=clean.variables(), stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            ready = re.search(r"http://[\d.:]+", server.stdout.readline())
            assert ready is not None
            url = ready.group()
            health = json.load(urlopen(f"{url}/healthz"))
            history = json.load(urlopen(f"{url}/v1/history"))
            console = urlopen(f"{url}/console").read().decode()
            reference = json.load(urlopen(f"{url}/v1/openapi.json"))
        finally:
            server.terminate()

    assert [(ending["kind"], ending["outcome"]) for ending in history["endings"]] == [
        ("send_mail", "done")
    ]
    assert "<html" in console
    assert {health["version"], reference["info"]["version"], clean.distribution.version} == {
        __version__
    }


@pytest.mark.parametrize("program", ["penstock", "penstock-queue"])
def test_the_command_has_both_names(clean: CleanEnvironment, tmp_path: Path, program: str) -> None:
    assert clean.run(program, "--version", folder=tmp_path) == f"penstock {__version__}\n"


def test_without_an_extra_its_install_line_is_printed(
    clean: CleanEnvironment, worked: Path
) -> None:
    command = [str(clean.bin / "penstock"), "archive", "run"]

    done = subprocess.run(
        command, cwd=worked, env=clean.variables(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "pip install 'penstock-queue[archive]'" in done.stderr


def test_every_extra_has_a_test(clean: CleanEnvironment) -> None:
    tested = {
        name.removeprefix("test_the_extra_").partition("_")[0]
        for name in globals()
        if name.startswith("test_the_extra_")
    }

    assert tested == set(clean.extras) - INTERNAL


def test_the_extra_postgres_opens_a_store(run: Run, postgres_url: str) -> None:
    run("penstock", "migrate", "--store", postgres_url)

    assert '"ok"' in run("penstock", "doctor", "--store", postgres_url, "--json")


def test_the_extra_tracing_carries_the_trace(run: Run) -> None:
    program = (
        "from penstock.client.jobs import tracing\n"
        "from opentelemetry import trace\n"
        "context = trace.SpanContext(1, 2, False, trace.TraceFlags(1))\n"
        "with trace.use_span(trace.NonRecordingSpan(context)):\n"
        "    print(tracing.current_trace())\n"
    )

    assert f"{1:032x}-{2:016x}" in run("python", "-c", program)


def test_the_extra_agents_imports(run: Run) -> None:
    assert "AgentSteps" in run(
        "python", "-c", "from penstock.client import agents; print(dir(agents))"
    )


def test_the_extra_archive_writes_the_lake(run: Run) -> None:
    run("penstock", "archive", "run")

    assert "history" in run("python", "-c", "import os; print(os.listdir('data/lake'))")


def test_the_extra_delta_writes_delta_tables(run: Run) -> None:
    run("penstock", "archive", "run", "--set", "archive.format=delta")

    assert "_delta_log" in run("python", "-c", "import os; print(os.listdir('data/lake/history'))")


def test_the_extra_sql_queries_the_lake(run: Run) -> None:
    run("penstock", "archive", "run")

    assert run("penstock", "sql", "SELECT kind FROM history", "--csv") == "kind\nsend_mail\n"


def test_the_extra_spark_finds_java_and_lists_its_jobs(run: Run) -> None:
    java = run("penstock", "pipeline", "java").strip()

    assert (Path(java) / "bin" / "java").exists()
    assert "rollups" in run("penstock", "pipeline", "schema")
    assert run("python", "-c", "from pyspark.sql import SparkSession; print(1)") == "1\n"


def test_the_extra_redis_reads_a_source(run: Run) -> None:
    program = "import penstock.outbound.redis_source, redis; print(redis.Redis.__name__)"

    assert run("python", "-c", program) == "Redis\n"


def test_the_extra_kubernetes_imports_its_client(run: Run) -> None:
    program = "from kubernetes import client, config; print(client.AppsV1Api.__name__)"

    assert run("python", "-c", program) == "AppsV1Api\n"


def test_the_extra_django_has_its_backend(run: Run) -> None:
    program = (
        "from django.conf import settings\n"
        "settings.configure(INSTALLED_APPS=['django_tasks', 'penstock.django'], TASKS={\n"
        "    'default': {'BACKEND': 'penstock.django.backend.PenstockBackend',\n"
        "                'OPTIONS': {'url': 'sqlite:///data/penstock.db'}}})\n"
        "import django; django.setup()\n"
        "from django_tasks import default_task_backend\n"
        "print(default_task_backend.app.url)\n"
    )

    assert run("python", "-c", program) == "sqlite:///data/penstock.db\n"


def test_the_extra_mcp_has_its_tools(run: Run) -> None:
    program = (
        "from penstock.client.remote.server import Remote\n"
        "from penstock.edge.mcp.server import build_server\n"
        "print(build_server(Remote('http://127.0.0.1:1')).version)\n"
    )

    assert run("python", "-c", program) == f"{__version__}\n"


def test_the_extra_mysql_reports_a_server_that_is_down(
    clean: CleanEnvironment, tmp_path: Path
) -> None:
    """With the driver, an attempt to connect fails; without it, the install line is printed."""
    url = f"mysql://penstock@127.0.0.1:{free_port()}/penstock"
    command = [str(clean.bin / "penstock"), "migrate", "--store", url]
    texts = []
    for extra in ("", "mysql"):
        variables = clean.variables(extra)
        done = subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        texts.append(done.stderr)

    assert "pip install 'penstock-queue[mysql]'" in texts[0]
    assert "pip install" not in texts[1]
    assert texts[1].startswith("penstock: ")
