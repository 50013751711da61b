"""The packages are built once, as `make dist` builds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.packages.environments import CleanEnvironment


@dataclass(frozen=True)
class Packages:
    sdist: Path
    wheel: Path
    """Built from the sdist."""


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def clean(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    return CleanEnvironment(tmp_path_factory.mktemp("clean"), packages.wheel)


def build(tree: Path, into: Path, *flags: str) -> Packages:
    command = [sys.executable, "-m", "build", "--no-isolation", "--quiet", "--outdir", str(into)]
    subprocess.run([*command, *flags, str(tree)], check=True, capture_output=True)
    [wheel] = into.glob("*.whl")
    return Packages(next(into.glob("*.tar.gz"), wheel), wheel)


def tracked_files() -> list[str]:
    """The files of the repository, and new ones that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def copy_tree(into: Path) -> Path:
    """The repository as another clone has it: other times, another path, other permissions."""
    mask = os.umask(0o077)
    try:
        for name in tracked_files():
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    finally:
        os.umask(mask)
    return into
