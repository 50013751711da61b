"""Find a Chromium for the console tests, and install one if there is none.

    python -m tests.support.chromium

is what `make test` runs first. The order: the program named by PENSTOCK_TEST_CHROMIUM, the
machine's own Chromium or Chrome, Debian's package (on demand, as root). If none of
them works, this fails: tests never skip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from playwright._impl._driver import compute_driver_executable

from tests.support import debian

CHOSEN_BY_HAND = "PENSTOCK_TEST_CHROMIUM"
# The shell is the same browser without windows, and needs a third less of the processor.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
# No sandbox for root, no sync, no updates, no requests except for our pages.
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
  - Chromium or Chrome on this machine
    (Debian: apt-get install chromium-headless-shell fonts-dejavu-core)
  - {CHOSEN_BY_HAND}=<path of such a program>
`make test` tries Debian's package by itself."""
# The node binary inside Playwright's wheel is linked against it; a bare Debian lacks it.
DRIVER_PACKAGE = "libatomic1"
DRIVER_MISSING = f"""\
Playwright's driver does not start: {{error}}
It usually lacks a library (Debian: apt-get install {DRIVER_PACKAGE}).
`make test` tries Debian's package by itself."""


class ChromiumMissingError(RuntimeError):
    def __init__(self) -> None:
        super().__init__(MISSING)


def require() -> str:
    """Return its path; raises ChromiumMissingError."""
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
    """The version, such as "Chromium 156.0.8078.79"; empty if it does not run."""
    done = _run(program, "--version")
    return " ".join(done.stdout.split()[:2]) if done.returncode == 0 else ""


def driver_error() -> str | None:
    """Why Playwright cannot start here; None if it can."""
    done = _run(compute_driver_executable()[0], "--version")
    return None if done.returncode == 0 else debian.last_line(done.stderr)


def main() -> int:
    if find() is None and CHOSEN_BY_HAND not in os.environ:
        print("Chromium is not installed: installing Debian's package …", flush=True)
        debian.install("chromium-headless-shell")
        debian.install("fonts-dejavu-core")
    found = find()
    if found is None or not version(found):
        print(MISSING, file=sys.stderr)
        return 1
    if driver_error() is not None:
        debian.install(DRIVER_PACKAGE)
    error = driver_error()
    if error is not None:
        print(DRIVER_MISSING.format(error=error), file=sys.stderr)
        return 1
    print(f"Testing with {version(found)} from {found}")
    return 0


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return debian.run([program, *arguments])
    except OSError as error:
        return subprocess.CompletedProcess(program, 127, "", str(error))


if __name__ == "__main__":
    sys.exit(main())
