"""A folder on a disk or in an object store; a file in it is whole, or not there.

Paths are relative to the folder and use `/`.  Files and folders whose names begin with `.` or `_`
are invisible to readers of tables, and to `files`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple, Protocol

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.places import is_object_store, local_path, scheme_of

Token = Callable[[], str]  # makes names of temporary files unique


class FileEntry(NamedTuple):
    path: str
    size: int
    changed_at: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class NewFile(Protocol):
    """A file being written; it appears when it is kept, under the path it has by then."""

    path: str
    out: IO[bytes]

    def keep(self) -> FileEntry: ...
    def discard(self) -> None: ...


class StagedFolder(Protocol):
    """A new folder whose files appear together when it is kept."""

    def new_file(self, name: str) -> NewFile: ...
    def keep(self) -> None: ...
    def discard(self) -> None: ...


class Folder(Protocol):
    @property
    def place(self) -> str: ...

    def read(self, path: str) -> bytes | None:
        """None: there is no such file."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, or replace it."""
        ...

    def new_file(self, path: str) -> NewFile: ...
    def stage_folder(self, path: str) -> StagedFolder | None:
        """None where several files cannot appear together."""
        ...

    def names(self, path: str = "") -> list[str]:
        """The names of the files and folders in a folder; empty if it does not exist."""
        ...

    def has_entries(self, path: str) -> bool:
        """True for a folder that is not empty; nothing is listed."""
        ...

    def files(self, path: str = "") -> list[FileEntry]:
        """All files below, by path; the visible ones."""
        ...

    def source(self, path: str) -> Any:
        """What pyarrow reads the file from; raises FileNotFoundError."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove it with its files."""
        ...

    def tidy(self, patterns: Sequence[str], *, older_ms: int) -> int:
        """Remove temporary files of killed processes below folders of these patterns."""
        ...


def open_folder(place: str, token: Token) -> Folder:
    """Needs pyarrow for an object store; raises InvalidRequest for any other URL."""
    if is_object_store(place):
        from penstock.files.object_folder import ObjectFolder

        return ObjectFolder(place)
    if not can_open(place):
        raise InvalidRequest(
            f"unsupported location {place[:80]!r}; use a folder, s3://, gs:// or abfs://"
        )
    from penstock.files.local_folder import LocalFolder

    return LocalFolder(local_path(place), token)


def can_open(place: str) -> bool:
    """False for HDFS and the like, which only Spark can reach."""
    return is_object_store(place) or scheme_of(place) is None


def first_line(error: BaseException) -> str:
    """What an error of a library says, short enough for one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def s3_endpoint() -> str:
    """The endpoint of an S3 server other than Amazon's; "" for Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")


def sync_path(path: str | os.PathLike[str]) -> None:
    """Of a file or a folder: it survives a power cut from now on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_visible(name: str) -> bool:
    return name[:1] not in ("", ".", "_")
