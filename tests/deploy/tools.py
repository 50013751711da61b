"""Run the programs that check deploy/; wheels put them beside Python, Debian on the path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT
from tests.support import debian
from tests.support.programs import need

DEPLOY = ROOT / "deploy"


def program(name: str, package: str | None = None) -> str:
    found = debian.find([name], folders=[str(Path(sys.executable).parent)])
    return str(found) if found else need(name, package)


def run(*command: str | Path) -> str:
    """What the program prints; it must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout
