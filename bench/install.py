"""Finds the peers, and installs the ones it may.

Debian packages are installed only by root with apt at hand; PyPI packages only where pip is.
Whatever stays missing is reported with its reason, so that no row is left out in silence.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")
EXTRA_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/lib/rabbitmq/bin")


class MissingError(Exception):
    """A peer cannot be measured here; the text says why."""


def program(
    names: Sequence[str], *, packages: Sequence[str], may_install: bool, folders: Sequence[str] = ()
) -> Path:
    """The first of `names` that is on this machine, after trying `packages` one after the other."""
    found = _find(names, folders)
    if found is not None:
        return found
    reasons = _try_packages(packages) if may_install else ["installing was switched off"]
    found = _find(names, folders)
    if found is None:
        raise MissingError(f"no {' or '.join(names)}: {'; '.join(reasons)}")
    return found


def module(name: str, *, package: str, may_install: bool) -> None:
    """Makes sure that Python module `name` can be imported."""
    if importlib.util.find_spec(name) is not None:
        return
    if not may_install:
        raise MissingError(f"no module {name}: installing was switched off")
    if importlib.util.find_spec("pip") is None:
        raise MissingError(f"no module {name}, and no pip to install {package} with")
    done = _run([sys.executable, "-m", "pip", "install", "--quiet", package])
    importlib.invalidate_caches()
    if importlib.util.find_spec(name) is None:
        raise MissingError(f"no module {name}: pip install {package}: {_last_line(done.stderr)}")


def environment(package: str, *, oldest: tuple[int, int], may_install: bool) -> Path:
    """Where the programs of `package` are: in an environment for it alone, since it pins others."""
    folder = Path(sys.prefix) / "peers" / package
    programs, is_whole = folder / "bin", folder / ".whole"
    if is_whole.exists():
        return programs
    if not may_install:
        raise MissingError(f"no {package}: installing was switched off")
    python = _python(oldest)
    for command in (
        [python, "-m", "venv", "--clear", str(folder)],
        [str(programs / "python"), "-m", "pip", "install", "--quiet", package],
    ):
        done = _run(command)
        if done.returncode != 0:
            text = _last_line(done.stderr or done.stdout)
            raise MissingError(f"no {package}: {' '.join(command[1:4])}: {text}")
    is_whole.touch()
    return programs


def _python(oldest: tuple[int, int]) -> str:
    """This Python, or a newer one on the path."""
    if sys.version_info >= oldest:
        return sys.executable
    for minor in range(oldest[1], oldest[1] + 4):
        found = shutil.which(f"python3.{minor}")
        if found and _run([found, "-c", ""]).returncode == 0:  # it may stand for one that is gone
            return found
    raise MissingError(f"it needs Python {oldest[0]}.{oldest[1]}, and none is on the path")


def _find(names: Sequence[str], folders: Sequence[str]) -> Path | None:
    path = os.pathsep.join((*folders, os.environ.get("PATH", ""), *EXTRA_FOLDERS))
    for name in names:
        found = shutil.which(name, path=path)
        if found:
            return Path(found)
    return None


def _try_packages(packages: Sequence[str]) -> list[str]:
    if shutil.which("apt-get") is None:
        return ["no apt-get on this machine"]
    if os.geteuid() != 0:
        return [f"installing {packages[0]} needs root"]
    reasons = []
    for package in packages:
        done = _apt_install(package)
        if done.returncode == 0:
            return []
        reasons.append(f"apt-get install {package}: {_last_line(done.stderr)}")
    return reasons


def _apt_install(package: str) -> subprocess.CompletedProcess[str]:
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    with _services_stay_stopped():
        done = _run(command)
        if done.returncode != 0 and _run(["apt-get", "update", "-q"]).returncode == 0:
            done = _run(command)
    return done


@contextlib.contextmanager
def _services_stay_stopped() -> Iterator[None]:
    """A packaged server starts itself when installed, and would share the disk with the runs."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "failed without a word"
