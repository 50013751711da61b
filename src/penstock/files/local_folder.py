"""A folder of this machine, or one that it has mounted.

A file is written under a name that readers ignore, synced, and renamed; then its folder is synced.
A killed process leaves at most a file that readers ignore.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from penstock.files.folder import FileEntry, Token, is_visible, sync_path

TEMPORARY = ".tmp-"


class LocalFolder:
    def __init__(self, folder: str | Path, token: Token) -> None:
        self.path = Path(folder)
        self._token = token

    @property
    def place(self) -> str:
        return str(self.path)

    def read(self, path: str) -> bytes | None:
        try:
            return (self.path / path).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        file = self.new_file(path)
        file.out.write(content)
        file.keep()

    def new_file(self, path: str) -> LocalFile:
        return LocalFile(self.path, path, self._token())

    def stage_folder(self, path: str) -> LocalStagedFolder:
        return LocalStagedFolder(self.path, path, self._token())

    def names(self, path: str = "") -> list[str]:
        folder = self.path / path
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def has_entries(self, path: str) -> bool:
        folder = self.path / path
        return folder.is_dir() and any(folder.iterdir())

    def files(self, path: str = "") -> list[FileEntry]:
        found = []
        for root, folders, names in os.walk(self.path / path):
            folders[:] = [name for name in folders if is_visible(name)]
            for name in filter(is_visible, names):
                entry = _entry(Path(root, name), self.path)
                if entry is not None:
                    found.append(entry)
        return sorted(found)

    def source(self, path: str) -> str:
        return str(self.path / path)

    def remove(self, path: str) -> None:
        (self.path / path).unlink(missing_ok=True)

    def remove_folder(self, path: str) -> None:
        folder = self.path / path
        if folder.is_dir():
            hidden = _temporary(folder, self._token())
            rename(folder, hidden)
            shutil.rmtree(hidden)

    def tidy(self, patterns: Sequence[str], *, older_ms: int) -> int:
        """Ages are measured by the file system's clock, which need not be ours."""
        left = [path for one in patterns for path in self.path.glob(f"{one}{TEMPORARY}*")]
        if not left:
            return 0
        probe = _temporary(self.path / "now", self._token())
        probe.touch()
        before_at = _changed_at(probe) - older_ms
        probe.unlink()
        old = [path for path in left if _changed_at(path) < before_at]
        for path in old:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return len(old)


class LocalFile:
    def __init__(self, root: Path, path: str, token: str) -> None:
        self.path = path
        self._root = root
        self._temporary = _temporary(root / path, token)
        make_folder(self._temporary.parent)
        self.out = _create(self._temporary)

    def keep(self) -> FileEntry:
        try:
            self.out.flush()
            os.fsync(self.out.fileno())
            state = os.fstat(self.out.fileno())
            self.out.close()
            rename(self._temporary, self._root / self.path)
        except BaseException:
            self.discard()
            raise
        return FileEntry(self.path, state.st_size, state.st_mtime_ns // 1_000_000)

    def discard(self) -> None:
        self.out.close()
        self._temporary.unlink(missing_ok=True)


class LocalStagedFolder:
    """Hidden until it is renamed."""

    def __init__(self, root: Path, path: str, token: str) -> None:
        self._root = root
        self._path = path
        self._hidden = _temporary(root / path, token)

    def new_file(self, name: str) -> LocalFile:
        return LocalFile(self._hidden, name, "new")

    def keep(self) -> None:
        rename(self._hidden, self._root / self._path)

    def discard(self) -> None:
        shutil.rmtree(self._hidden, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """Create and sync: a new folder survives a power cut once its parent is synced."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_path(folder.parent)


def rename(old: Path, new: Path) -> None:
    old.rename(new)
    sync_path(new.parent)


def _temporary(path: Path, token: str) -> Path:
    return path.with_name(f"{TEMPORARY}{token}-{path.name}")


def _create(path: Path) -> IO[bytes]:
    """Readable by its owner only: the lake contains bodies."""
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _entry(path: Path, root: Path) -> FileEntry | None:
    try:
        state = path.stat()
    except FileNotFoundError:  # replaced since
        return None
    return FileEntry(
        path.relative_to(root).as_posix(), state.st_size, state.st_mtime_ns // 1_000_000
    )


def _changed_at(path: Path) -> int:
    try:
        return int(path.stat().st_mtime * 1000)
    except FileNotFoundError:  # another process has removed it
        return 2**62
