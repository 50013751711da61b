"""All files of the data directory, and which of their names are on the disk.

By the letter of POSIX a new file's name is durable only after a sync of its directory, even if the
file itself was synced; ext4 is kinder and syncs the name with the file. Both are tried.
"""

from __future__ import annotations

import os
import random
import shutil
from enum import StrEnum
from pathlib import Path

from tests.faults.disk import FileOnDisk, Loss


class Names(StrEnum):
    EXT4 = "ext4"
    POSIX = "posix"


class Directory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[Path, FileOnDisk] = {}
        self._new: set[Path] = set()
        self._gone: dict[Path, FileOnDisk] = {}
        self._opened: list[FileOnDisk] = []
        # If the broker makes its own directory, that name needs a sync of the parent as well.
        self._is_itself_new = not path.exists()

    def opened(self, path: Path, *, is_new: bool) -> FileOnDisk:
        if is_new or path not in self.files:
            self.files[path] = FileOnDisk(path, is_new=is_new)
            self._opened.append(self.files[path])
            if is_new:
                self._new.add(path)
        return self.files[path]

    def deleted(self, path: Path) -> None:
        file = self.files.pop(path, None)
        if file is not None and path not in self._new:
            self._gone[path] = file
        self._new.discard(path)

    def synced(self, path: Path) -> None:
        """A directory was synced: ours, or the one it is in."""
        if path == self.path.parent:
            self._is_itself_new = False
        elif path == self.path:
            self._new.clear()
            self._gone.clear()

    def lose_power(self, loss: Loss, names: Names, dice: random.Random) -> None:
        if names is Names.POSIX and self._is_itself_new:
            shutil.rmtree(self.path)
            return
        for path, file in self._gone.items():
            # The old name comes back unless a newer file of that name is there to stay.
            if path not in self.files and (loss is Loss.EVERYTHING or dice.random() < 0.5):
                self._restore(path, file)
                file.lose(loss, dice)
        for path, file in self.files.items():
            has_a_name = path not in self._new or (names is Names.EXT4 and file.was_synced)
            if has_a_name:
                file.lose(loss, dice)
            else:
                path.unlink(missing_ok=True)
        for path in self.path.glob("*-shm"):
            path.unlink()  # memory, not disk

    def close(self) -> None:
        """Call it when no process has the files open."""
        for file in self._opened:
            os.close(file.fd)
        self._opened.clear()
        self.files.clear()
        self._gone.clear()

    @staticmethod
    def _restore(path: Path, file: FileOnDisk) -> None:
        content = os.pread(file.fd, file.size(), 0)
        path.write_bytes(content)
        os.close(file.fd)
        file.fd = os.open(path, os.O_RDWR)
