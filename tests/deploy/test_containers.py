"""The Dockerfile and compose.yaml, as far as they can be checked without a Docker daemon."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.domain.optional_parts import DISTRIBUTION
from penstock.edge.cli.registry import find_command, load, parser_of
from tests.architecture.source import ROOT
from tests.deploy.tools import program, run
from tests.packages.environments import closure, requirements_of
from tests.support.private_servers import free_port

DOCKERFILE = ROOT / "Dockerfile"
# Of the packages that Penstock needs; the base image and Penstock come on top.
MAX_PACKAGES_MB = 110


def instructions() -> list[tuple[str, str]]:
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def value_of(instruction: str) -> str:
    """Of the last stage."""
    return [rest for word, rest in instructions() if word == instruction][-1]


def variables() -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(value_of("ENV")))


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def test_hadolint_finds_nothing() -> None:
    assert run(program("hadolint"), DOCKERFILE) == ""


def test_the_image_does_not_run_as_root() -> None:
    uid, _, gid = value_of("USER").partition(":")

    assert int(uid) > 0
    assert int(gid) > 0


def test_the_build_gets_every_file_that_it_copies() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY"]

    names = [name.removeprefix("./") for words in copied for name in words if "--" not in name]
    own = [name for name in names if not name.startswith("/")]

    assert [name for name in own if not (ROOT / name).exists()] == []
    assert {f"!{name}" for name in own} <= set(ignore)


def test_the_default_packages_are_small() -> None:
    [extras] = [rest for word, rest in instructions() if word == "ARG"]
    wanted = closure(
        need
        for extra in ["", *extras.removeprefix("EXTRAS=").split(",")]
        for need in requirements_of(distribution(DISTRIBUTION), extra)
    )

    sizes = [Path(str(path.locate())) for dist in wanted for path in dist.files or ()]
    size = sum(path.stat().st_size for path in sizes if path.exists())

    assert size / 1e6 < MAX_PACKAGES_MB


def test_the_entry_point_serves_and_the_health_check_asks_it(tmp_path: Path) -> None:
    """Outside a container: in another folder, on another port."""
    port = str(free_port())
    own = {"PENSTOCK_DATA": str(tmp_path), "PENSTOCK_SERVER_PORT": port}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **variables(), "PATH": path, **own}
    environment["PENSTOCK_SERVER_HOST"] = "127.0.0.1"
    command = [*json.loads(value_of("ENTRYPOINT")), *json.loads(value_of("CMD"))]
    check = json.loads(value_of("HEALTHCHECK").partition("CMD ")[2])
    check = [word.replace("7654", port) for word in check]

    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert "ready" in server.stdout.readline()
            healthy = subprocess.run(check, env=environment, check=False).returncode
        finally:
            server.terminate()
    unhealthy = subprocess.run(check, env=environment, check=False, stderr=subprocess.DEVNULL)

    assert (healthy, unhealthy.returncode, server.returncode) == (0, 1, 0)
    assert variables()["PENSTOCK_SERVER_HOST"] == "0.0.0.0"
    assert variables()["PENSTOCK_AUTH_REQUIRED"] == "always"


def test_workers_in_the_image_log_json() -> None:
    parser = parser_of("worker", load("worker"), variables())

    assert parser.read(["jobs:app"]).log_format == "json"


def test_the_compose_file_follows_its_schema() -> None:
    schema = ["--builtin-schema", "vendor.compose-spec"]

    run(sys.executable, "-m", "check_jsonschema", *schema, ROOT / "compose.yaml")


def test_the_compose_file_names_what_it_has() -> None:
    document = compose()

    for service in document["services"].values():
        assert set(service.get("depends_on", ())) <= document["services"].keys()
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in document["volumes"] or (ROOT / source).is_dir()


@pytest.mark.parametrize("service", ["migrate", "worker", "pipeline"])
def test_the_commands_of_the_compose_file_are_valid(service: str) -> None:
    name, rest = find_command(compose()["services"][service]["command"])

    assert name is not None
    parser_of(name, load(name), {}).read(rest)


def test_the_compose_files_worker_has_its_application(tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_STORE_URL": f"sqlite:///{tmp_path}/jobs.db"}
    folder = ROOT / "deploy" / "compose"
    [app] = re.findall(r"\w+:\w+", compose()["services"]["worker"]["command"][-1])

    python = [sys.executable, "-B"]
    subprocess.run([*python, "jobs.py"], cwd=folder, env=environment, check=True)
    worker = [*python, "-m", "penstock", "worker", app, "--burst"]
    done = subprocess.run(
        worker, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )

    assert "to ada@example.org" in done.stdout
