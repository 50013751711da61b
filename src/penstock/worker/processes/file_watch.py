"""Notices changed Python files, for `--reload`.

It compares size and modification time, which works on every file system and in every container.
Hidden folders, virtual environments and caches are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

_SKIPPED = {"__pycache__", "node_modules", "site-packages", "dist-packages"}
_VENV = "pyvenv.cfg"
_State = tuple[int, int]  # modification time and size


class FileWatch:
    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = [os.path.abspath(folder) for folder in folders]
        self._seen = dict(self._states())
        self._changed: set[str] = set()

    def settled(self) -> list[str]:
        """The files that changed, once two looks in a row saw the same: editors save several."""
        now = dict(self._states())
        changed = {path for path, _ in self._seen.items() ^ now.items()}
        self._seen = now
        self._changed |= changed
        if changed or not self._changed:
            return []
        found, self._changed = sorted(self._changed), set()
        return found

    def _states(self) -> Iterator[tuple[str, _State]]:
        for folder in self._folders:
            yield from _files(folder)


def _files(folder: str) -> Iterator[tuple[str, _State]]:
    with suppress(OSError), os.scandir(folder) as entries:  # it may vanish meanwhile
        for entry in list(entries):
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if not os.path.exists(os.path.join(entry.path, _VENV)):
                        yield from _files(entry.path)
                elif entry.name.endswith(".py"):
                    about = entry.stat()
                    yield entry.path, (about.st_mtime_ns, about.st_size)
