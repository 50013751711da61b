"""Find programs of the machine, or install their Debian packages if we are root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

_POLICY = Path("/usr/sbin/policy-rc.d")
_EXTRA_FOLDERS = ("/usr/sbin", "/usr/local/sbin")


def find(names: Sequence[str], *, folders: Sequence[str] = ()) -> Path | None:
    """The first of `names` that exists; `folders` are searched before the path."""
    path = os.pathsep.join((*folders, os.environ.get("PATH", ""), *_EXTRA_FOLDERS))
    for name in names:
        found = shutil.which(name, path=path)
        if found:
            return Path(found)
    return None


def install(*packages: str) -> list[str]:
    """Try the packages one by one until one is installed; reports why the others failed."""
    if shutil.which("apt-get") is None:
        return ["no apt-get on this machine"]
    if os.geteuid() != 0:
        return [f"installing {packages[0]} needs root"]
    reasons = []
    for package in packages:
        done = _apt_install(package)
        if done.returncode == 0:
            return []
        reasons.append(f"apt-get install {package}: {last_line(done.stderr)}")
    return reasons


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "failed without a word"


def _apt_install(package: str) -> subprocess.CompletedProcess[str]:
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    with _services_stay_stopped():
        done = run(command)
        if done.returncode != 0 and run(["apt-get", "update", "-q"]).returncode == 0:
            done = run(command)
    return done


@contextlib.contextmanager
def _services_stay_stopped() -> Iterator[None]:
    """Keep packaged servers from starting at installation: they would share our disk."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)
