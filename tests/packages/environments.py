"""Clean environments: the built wheel and what its extras declare, nothing else.

The distributions come from the environment of the tests, as links, so nothing is downloaded: an
extra that needs more than it declares fails here as it would on a new machine.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

TIMEOUT_S = 120


class CleanEnvironment:
    """A virtual environment with the wheel; `run` adds the distributions of one extra."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._folder = folder
        venv.create(folder / "venv", with_pip=False)
        self.bin = folder / "venv" / "bin"
        [self.site] = (folder / "venv" / "lib").glob("python*/site-packages")
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "-q"]
        subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
        [found] = Distribution.discover(name="penstock-queue", path=[str(self.site)])
        self.distribution = found
        self._base = {dist.name: dist for dist in closure(requirements_of(found, ""))}
        link_into(self.site, self._base.values())

    @property
    def extras(self) -> list[str]:
        return self.distribution.metadata.get_all("Provides-Extra") or []

    def run(self, *command: str, extra: str = "", folder: Path) -> str:
        """Run a program of the environment in the folder and return what it prints."""
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=folder,
            env=self.variables(extra),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def variables(self, extra: str = "") -> dict[str, str]:
        clean = {"HOME": str(self._folder), "PATH": f"{self.bin}:/usr/bin:/bin"}
        return clean | ({"PYTHONPATH": str(self._site_of(extra))} if extra else {})

    def _site_of(self, extra: str) -> Path:
        site = self._folder / extra
        if not site.exists():
            wanted = closure(requirements_of(self.distribution, extra))
            link_into(site, [dist for dist in wanted if dist.name not in self._base])
        return site


def closure(requirements: Iterable[Requirement]) -> list[Distribution]:
    """The distributions that pip would install, with those that they need."""
    found: dict[tuple[str, str], Distribution] = {}
    pending = [(need, extra) for need in requirements for extra in ("", *need.extras)]
    while pending:
        need, extra = pending.pop()
        if (need.name, extra) not in found:
            dist = distribution(need.name)
            found[need.name, extra] = dist
            more = requirements_of(dist, extra)
            pending += [(other, of) for other in more for of in ("", *other.extras)]
    return list({dist.name: dist for dist in found.values()}.values())


def requirements_of(dist: Distribution, extra: str) -> Iterator[Requirement]:
    """Those of the extra; of none, those without one."""
    for text in dist.requires or ():
        need = Requirement(text)
        if need.marker is None:
            is_wanted = not extra
        else:
            is_always = need.marker.evaluate({"extra": ""})
            is_wanted = need.marker.evaluate({"extra": extra}) and (not extra or not is_always)
        if is_wanted:
            yield need


def link_into(site: Path, dists: Iterable[Distribution]) -> None:
    """Links to whole packages; a folder that several distributions share is made of links."""
    site.mkdir(exist_ok=True)
    files = [(path, dist) for dist in dists for path in _files_of(dist)]
    shares = {(folder, id(dist)) for path, dist in files for folder in path.parents}
    owners = Counter(folder for folder, _ in shares)
    for path, dist in files:
        chain = [*reversed(path.parents), path][1:]  # from the outermost folder to the file
        whole = next(part for part in chain if owners[part] <= 1)
        target = site / whole
        if not target.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(dist.locate_file(str(whole)))))


def _files_of(dist: Distribution) -> Iterator[PurePosixPath]:
    for path in dist.files or ():
        if path.parts[0] != ".." and "__pycache__" not in path.parts:
            yield PurePosixPath(path)
