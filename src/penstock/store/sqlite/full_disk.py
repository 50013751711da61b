"""SQLite's memory-mapped index of the log (`-shm`) on a disk without free space.

SQLite gives the file its size by writing one byte per page.  On a file system with blocks smaller
than a page (ext4 of less than 512 MB has blocks of 1 KiB) the rest of the page has no space on the
disk yet.  The kernel allocates it when the memory is first touched, and kills the process with
SIGBUS if the disk is full at that moment.  So a store is not opened while there is almost no free
space, and as soon as it is open the index gets all the space that it will need.
"""

from __future__ import annotations

import os
from errno import EBADF
from pathlib import Path

from penstock.domain.errors import StoreUnavailable

FREE_BYTES = 1 << 20  # below this the disk counts as full; the index needs at most 256 KiB at once
INDEX_BYTES = 256 << 10  # of a log of 32,000 pages; checkpoints keep it below 10,000
_DESCRIPTORS = "/proc/self/fd"


def check_free_space(path: Path) -> None:
    """Raises StoreUnavailable while the disk of this database is full."""
    try:
        disk = os.statvfs(path.parent)
    except OSError as error:
        raise StoreUnavailable(f"cannot open {path}: {error}") from error
    free = disk.f_bavail * disk.f_frsize
    if free < FREE_BYTES:
        raise StoreUnavailable(f"the disk is full: {free} bytes are free beside {path}")


def reserve_index(path: str) -> None:
    """After the database was opened: allocate the whole index; raises OSError on a full disk."""
    descriptor = own_descriptor(f"{path}-shm")
    if descriptor is not None:
        os.posix_fallocate(descriptor, 0, INDEX_BYTES)


def own_descriptor(path: str) -> int | None:
    """A descriptor under which SQLite has the file open.

    Closing a descriptor of our own would drop SQLite's locks on the file.
    """
    try:
        descriptors = [int(name) for name in os.listdir(_DESCRIPTORS)]
        there = os.stat(path)
    except OSError:
        return None
    for descriptor in descriptors:
        try:
            if os.path.samestat(os.fstat(descriptor), there):
                return descriptor
        except OSError as error:
            if error.errno != EBADF:  # closed since the list was made
                raise
    return None
