"""Where the servers of a run keep their data: a real disk, a fresh folder each, free ports."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path

NOT_A_DISK = frozenset({"tmpfs", "ramfs", "devtmpfs"})


class Workspace:
    """A folder that holds one fresh folder per started server, and is emptied at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / ".gitignore").write_text("*\n")
        self.file_system = file_system_of(self.root)
        if self.file_system in NOT_A_DISK:
            raise SystemExit(f"{self.root} is on {self.file_system}: fsync means nothing there")
        self._numbers = itertools.count(1)

    def fresh(self, name: str) -> Path:
        """A new empty folder; servers that drop root must be able to walk to it."""
        folder = self.root / f"{os.getpid()}-{next(self._numbers)}-{name}"
        folder.mkdir(mode=0o755)
        return folder

    def drop(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        for folder in self.root.glob(f"{os.getpid()}-*"):
            self.drop(folder)


def file_system_of(path: Path) -> str:
    """The type of the file system that holds `path`, as the kernel names it."""
    best, kind = "", "unknown"
    for line in _mounts():
        _, where, what = line.split(" ")[:3]
        mount = where.replace("\\040", " ")
        if path.is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, what
    return kind


def free_port() -> int:
    """A port that is free now; the caller takes it at once, so a clash is unlikely."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> int:
    """The first of `count` free ports in a row, below those that outgoing connections get."""
    for first in range(20_000, 30_000, count):
        if not any(is_taken(port) for port in range(first, first + count)):
            return first
    raise OSError(f"no {count} free ports in a row")


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _mounts() -> Iterable[str]:
    mounts = Path("/proc/mounts")
    return mounts.read_text().splitlines() if mounts.exists() else []
