"""The file of a lock, beside the tables: on this machine's disk, in an object store, or on HDFS.

Its name begins with `_`, so that readers of tables ignore it.  Only a process that knows its
current text, or that there is none, can change it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError

from penstock.domain.lake.places import is_object_store
from penstock.pipeline.files.listing import local_path
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.spark.progress import is_remote

NAME = "_running.json"
STREAM = "_streaming.json"
OVERWRITE_WAIT_S = 2.0  # longer than a write to an object store takes


class LockFile(Protocol):
    place: str

    def read(self) -> str | None:
        """None if the file does not exist."""
        ...

    def swap(self, old: str | None, new: str | None) -> bool:
        """Replace the text; False if it is no longer `old`.  None: the file does not exist."""
        ...


def lock_file(lake: SparkLake, name: str = NAME) -> LockFile | None:
    """None if the tables are out of reach: Spark Connect offers no exclusive files."""
    path = f"{lake.tables_folder}/{name}"
    if is_object_store(path):
        return ObjectLockFile(lake.tables_folder, name)
    if is_remote(lake.spark):
        return LocalLockFile(Path(path)) if Path(lake.folder).is_dir() else None
    here = local_path(lake.spark, path)
    if here is not None:
        return LocalLockFile(Path(here))
    return HadoopLockFile(lake.spark.sparkContext, path)


def lock_file_here(tables_folder: str) -> LocalLockFile | None:
    """The lock as found without Spark; None if the folder is not on this machine."""
    folder = Path(tables_folder)
    return LocalLockFile(folder / NAME) if folder.is_dir() else None


class LocalLockFile:
    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._path = path

    def read(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def swap(self, old: str | None, new: str | None) -> bool:
        with self._guard():
            if self.read() != old:
                return False
            if new is None:
                self._path.unlink(missing_ok=True)
            else:
                fresh = self._path.with_suffix(".new")
                fresh.write_text(new, encoding="utf-8")
                os.replace(fresh, self._path)
            return True

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Inside the block, no other process swaps; the system ends this when a process exits."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # The guard stays there, empty.
        with open(self._path.with_suffix(".guard"), "a", encoding="utf-8") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            yield


class ObjectLockFile:
    """If several processes write at once, the last write wins; each reads back to learn whether it
    won.
    """

    def __init__(
        self,
        tables_folder: str,
        name: str = NAME,
        *,
        wait_for_others: Callable[[], object] = lambda: Event().wait(OVERWRITE_WAIT_S),
    ) -> None:
        from penstock.files.object_folder import ObjectFolder

        self.place = f"{tables_folder}/{name}"
        self._name = name
        self._wait_for_others = wait_for_others
        self._folder = ObjectFolder(tables_folder)

    def read(self) -> str | None:
        text = self._folder.read(self._name)
        return None if text is None else text.decode()

    def swap(self, old: str | None, new: str | None) -> bool:
        if self.read() != old:
            return False
        if new is None:
            self._folder.remove(self._name)
            return True
        self._folder.write(self._name, new.encode())
        self._wait_for_others()
        return self.read() == new


class HadoopLockFile:
    def __init__(self, context: Any, path: str, *, wait_s: float = OVERWRITE_WAIT_S) -> None:
        self.place = path
        self._wait_s = wait_s
        self._jvm = context._jvm
        self._path = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def read(self) -> str | None:
        return self._text(self._path)

    def swap(self, old: str | None, new: str | None) -> bool:
        """Creating is atomic, replacing is not: Hadoop offers no conditional replacement.

        So each waits until the others have written, and the last one has it.  Two may both have
        it if one of them was suspended for longer than that between its look and its write.
        """
        if old is None and new is not None:
            return self._create(new)
        if self.read() != old:
            return False
        if new is None:
            return old is None or bool(self._files.delete(self._path, False))
        self._write(self._files.create(self._path, True), new)
        Event().wait(self._wait_s)
        return self.read() == new

    def _create(self, text: str) -> bool:
        try:
            out = self._files.create(self._path, False)
        except Py4JJavaError as error:
            if "FileAlreadyExists" in str(error) or self._files.exists(self._path):
                return False
            raise
        self._write(out, text)
        return True

    def _text(self, path: Any) -> str | None:
        try:
            stream = self._files.open(path)
        except Py4JJavaError as error:
            if "FileNotFound" in str(error):
                return None
            raise
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _write(self, out: Any, text: str) -> None:
        try:
            out.write(bytearray(text.encode()))
        finally:
            out.close()
