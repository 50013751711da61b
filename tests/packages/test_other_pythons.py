"""An installed wheel runs a job on every other supported Python that this machine has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.packages.conftest import Packages

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
PROGRAM = """
from penstock import Penstock

app = Penstock("sqlite:///jobs.db")


@app.job(queue="mail")
def send_mail(to: str) -> None:
    print(f"to {to}")


if __name__ == "__main__":
    send_mail.enqueue("ada@example.org")
"""


def other_pythons() -> Iterator[str]:
    """One of each version, on the path or installed by pyenv."""
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in SUPPORTED:
        name = f"python{version}"
        places = [shutil.which(name), *(str(path) for path in installed.glob(f"*/bin/{name}"))]
        runs = (place for place in places if place and has_venv(place))
        if version != here and (found := next(runs, None)):
            yield found


def has_venv(python: str) -> bool:
    done = subprocess.run(
        [python, "-c", "import ensurepip, venv"], capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("python", list(other_pythons()), ids=lambda path: Path(path).name)
def test_an_installed_wheel_runs_a_job(python: str, packages: Packages, tmp_path: Path) -> None:
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True)
    own = str(tmp_path / "venv" / "bin" / "python")
    (tmp_path / "jobs.py").write_text(PROGRAM)

    install = ["-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check"]
    pins = ["-c", str(ROOT / "constraints.txt")]
    subprocess.run([own, *install, *pins, str(packages.wheel)], check=True)
    subprocess.run([own, "jobs.py"], cwd=tmp_path, check=True)
    worker = [own, "-m", "penstock", "worker", "jobs:app", "--burst"]
    done = subprocess.run(worker, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "to ada@example.org" in done.stdout, done.stderr


def test_the_classifiers_name_supported_versions_only() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    named = re.findall(r"Python :: (\d\.\d+)", "\n".join(project["classifiers"]))

    assert set(named) <= set(SUPPORTED)
    assert project["requires-python"] == f">={SUPPORTED[0]}"


def test_ci_tests_every_supported_version() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")

    listed = ", ".join(f'"{version}"' for version in SUPPORTED)
    assert f"python: [{listed}]" in workflow
