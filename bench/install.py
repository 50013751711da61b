"""Finds the peers, and installs the ones it may.

Debian packages are installed only by root with apt at hand; PyPI packages only where pip is.
Whatever stays missing is reported with its reason, so that no row is left out in silence.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support import debian


class MissingError(Exception):
    """A peer cannot be measured here; the text says why."""


def program(
    names: Sequence[str], *, packages: Sequence[str], may_install: bool, folders: Sequence[str] = ()
) -> Path:
    """The first of `names` that is on this machine, after trying `packages` one after the other."""
    found = debian.find(names, folders=folders)
    if found is not None:
        return found
    reasons = debian.install(*packages) if may_install else ["installing was switched off"]
    found = debian.find(names, folders=folders)
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
    done = debian.run([sys.executable, "-m", "pip", "install", "--quiet", package])
    importlib.invalidate_caches()
    if importlib.util.find_spec(name) is None:
        raise MissingError(
            f"no module {name}: pip install {package}: {debian.last_line(done.stderr)}"
        )


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
        done = debian.run(command)
        if done.returncode != 0:
            text = debian.last_line(done.stderr or done.stdout)
            raise MissingError(f"no {package}: {' '.join(command[1:4])}: {text}")
    is_whole.touch()
    return programs


def _python(oldest: tuple[int, int]) -> str:
    """This Python, or a newer one on the path."""
    if sys.version_info >= oldest:
        return sys.executable
    for minor in range(oldest[1], oldest[1] + 4):
        found = shutil.which(f"python3.{minor}")
        if (
            found and debian.run([found, "-c", ""]).returncode == 0
        ):  # it may stand for one that is gone
            return found
    raise MissingError(f"it needs Python {oldest[0]}.{oldest[1]}, and none is on the path")
