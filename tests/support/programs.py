"""Programs that tests need from the machine; taken from Debian where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess


def need(program: str, package: str | None = None) -> str:
    """The program's path.  Missing and not to be had is a failure, never a skip."""
    found = shutil.which(program)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-qq", package or program]
        subprocess.run(["apt-get", "update", "-qq"], check=False, capture_output=True)
        subprocess.run(install, check=False, capture_output=True)
        found = shutil.which(program)
    assert found, (
        f"this test needs {program}: install it (Debian: apt-get install {package or program})"
    )
    return found
