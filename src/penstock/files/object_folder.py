"""A folder in an object store: Amazon S3 and what speaks its protocol, Google's, Azure's.

An object store has no rename, but an upload appears only when it is complete.  So a file is written
to a temporary file of this machine and then uploaded as a whole.  A process that is killed
meanwhile leaves no object; an unfinished upload of several parts stays invisible, until a lifecycle
rule of the bucket aborts it.

Credentials, region and endpoint are those of the environment, as for any other program:
AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS, AZURE_CLIENT_ID, …
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import IO, Any

import pyarrow as pa
from pyarrow import fs

from penstock.domain.errors import InvalidRequest, LakeUnreachable
from penstock.domain.lake.places import object_url
from penstock.files.folder import FileEntry, first_line, is_visible, s3_endpoint


class ObjectFolder:
    def __init__(self, url: str) -> None:
        self.place = url.rstrip("/")

    def read(self, path: str) -> bytes | None:
        with self._translate_errors():
            try:
                with self._files.open_input_stream(self._at(path)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def write(self, path: str, content: bytes) -> None:
        file = self.new_file(path)
        file.out.write(content)
        file.keep()

    def new_file(self, path: str) -> ObjectFile:
        return ObjectFile(self, path)

    def stage_folder(self, path: str) -> None:
        return None

    def names(self, path: str = "") -> list[str]:
        return sorted(found.base_name for found in self._list(path, recursive=False))

    def has_entries(self, path: str) -> bool:
        with self._translate_errors():
            [found] = self._files.get_file_info([self._at(path)])
        return bool(found.type == fs.FileType.Directory)

    def files(self, path: str = "") -> list[FileEntry]:
        root = self._at("")
        entries = [
            FileEntry(found.path[len(root) :].lstrip("/"), found.size, found.mtime_ns // 1_000_000)
            for found in self._list(path, recursive=True)
            if found.type == fs.FileType.File
        ]
        inside = len(path.rstrip("/")) + 1 if path else 0
        return sorted(e for e in entries if all(map(is_visible, e.path[inside:].split("/"))))

    def source(self, path: str) -> Any:
        with self._translate_errors():
            return self._files.open_input_file(self._at(path))

    def remove(self, path: str) -> None:
        with self._translate_errors(), suppress(FileNotFoundError):
            self._files.delete_file(self._at(path))

    def remove_folder(self, path: str) -> None:
        with self._translate_errors():
            for found in self._list(path, recursive=True):
                if found.type == fs.FileType.File:
                    self._files.delete_file(found.path)

    def tidy(self, patterns: Sequence[str], *, older_ms: int) -> int:
        return 0  # nothing temporary is ever written there

    def upload(self, source: str, path: str) -> FileEntry:
        """One call into Arrow: no signal can end it half-way and leave a part of the file."""
        with self._translate_errors():
            fs.copy_files(
                source,
                self._at(path),
                source_filesystem=fs.LocalFileSystem(),
                destination_filesystem=self._files,
            )
            [there] = self._files.get_file_info([self._at(path)])
        return FileEntry(path, there.size, there.mtime_ns // 1_000_000)

    def _list(self, path: str, *, recursive: bool) -> list[Any]:
        selector = fs.FileSelector(self._at(path), recursive=recursive, allow_not_found=True)
        with self._translate_errors():
            return list(self._files.get_file_info(selector))

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")

    @cached_property
    def filesystem_and_path(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        url = object_url(self.place)
        try:
            if url.startswith("s3://"):
                return _s3(), url.removeprefix("s3://")
            files, path = fs.FileSystem.from_uri(url)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidRequest(f"{self.place} cannot be opened: {first_line(error)}") from error
        return files, path

    @property
    def _files(self) -> Any:
        return self.filesystem_and_path[0]

    @property
    def _root(self) -> str:
        return self.filesystem_and_path[1]

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise LakeUnreachable(f"{self.place} cannot be reached: {first_line(error)}") from error


class ObjectFile:
    """`path` may be changed until the file is kept."""

    def __init__(self, folder: ObjectFolder, path: str) -> None:
        self.path = path
        self._folder = folder
        # Readable by its owner only.
        handle, self._temporary = tempfile.mkstemp(prefix="penstock-", suffix=".upload")
        self.out: IO[bytes] = os.fdopen(handle, "wb")

    def keep(self) -> FileEntry:
        try:
            self.out.close()
            return self._folder.upload(self._temporary, self.path)
        finally:
            self.discard()

    def discard(self) -> None:
        self.out.close()
        if os.path.exists(self._temporary):
            os.unlink(self._temporary)


def _s3() -> Any:
    """By URL, Arrow would ask AWS for the region of the bucket; it reads all but the endpoint."""
    endpoint = s3_endpoint()
    if not endpoint:
        return fs.S3FileSystem()
    scheme, _, host = endpoint.rpartition("://")
    return fs.S3FileSystem(scheme=scheme or "https", endpoint_override=host.rstrip("/"))
