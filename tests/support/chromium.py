"""Finds a Chromium to look at the console with, and gets one where there is none.

    python -m tests.support.chromium

is what `make test` runs first. The order: the program named by PENSTOCK_TEST_CHROMIUM, the
machine's own Chromium or Chrome, Debian's package (on demand, as root). A machine on which none of
them works fails here: tests never skip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

CHOSEN_BY_HAND = "PENSTOCK_TEST_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Nothing but our pages: no sandbox for root, no sync, no updates, no calls home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)
MISSING = f"""\
No Chromium to test the console with.
Any one of these is enough:
  - Chromium or Chrome on this machine (Debian: apt-get install chromium fonts-dejavu-core)
  - {CHOSEN_BY_HAND}=<path of such a program>
`make test` tries Debian's package by itself."""


class ChromiumMissingError(RuntimeError):
    def __init__(self) -> None:
        super().__init__(MISSING)


def require() -> str:
    """Its path; raises ChromiumMissingError."""
    found = find()
    if found is None:
        raise ChromiumMissingError
    return found


def find() -> str | None:
    by_hand = os.environ.get(CHOSEN_BY_HAND)
    if by_hand:
        return shutil.which(by_hand)
    return next(filter(None, map(shutil.which, NAMES)), None)


def version(program: str) -> str:
    """Such as "Chromium 156.0.8078.79"; empty when it does not run."""
    try:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return " ".join(asked.stdout.split()[:2])


def main() -> int:
    if find() is None and CHOSEN_BY_HAND not in os.environ:
        _install_debian_package()
    found = find()
    if found is None:
        print(MISSING, file=sys.stderr)
        return 1
    print(f"Testing with {version(found)} from {found}")
    return 0


def _install_debian_package() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    print("No Chromium on this machine: installing Debian's package chromium …", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ("update", "install -y --no-install-recommends chromium fonts-dejavu-core"):
        subprocess.run(["apt-get", "-qq", *command.split()], env=env, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
