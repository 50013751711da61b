"""Checks of the machine that the store runs on: Python, the data folder, its disk."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from penstock.domain.insights.answer import Disk
from penstock.domain.store.finding import Finding, fail, ok, warn

OLDEST_PYTHON = (3, 11)
MIB = 1024 * 1024
GIB = 1024 * MIB
LITTLE_BYTES, TOO_LITTLE_BYTES = GIB, 64 * MIB
SYNCS = 32
SLOW_MS, SUSPICIOUS_MS = 20.0, 0.02
# Files in memory are lost when the power fails; over a network, locks and syncs are unreliable.
VOLATILE = frozenset({"tmpfs", "ramfs"})
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs"})
_STORE_FILES = ("", "-wal", "-shm")  # what SQLite appends to the name of the database


def examine(folder: Path, *, clock: Callable[[], int]) -> Iterator[Finding]:
    yield _python()
    if not folder.is_dir():
        yield warn("data folder", f"{folder} does not exist yet; `penstock serve` creates it")
        return
    yield from _disk(folder)
    probe = folder / f".doctor-{os.getpid()}"
    try:
        took = _sync_ms(probe, clock)
    except OSError as error:
        yield fail("data folder", f"cannot write to {folder}: {error.strerror}")
        return
    finally:
        probe.unlink(missing_ok=True)
    yield ok("data folder", f"{folder} is writable")
    yield from _modes(folder)
    yield _sync(took)


def _modes(folder: Path) -> Iterator[Finding]:
    """Check that other users cannot read the files, which hold bodies and the signing secret."""
    if not folder.stat().st_mode & 0o077:
        return
    wide = sorted(p.name for p in folder.iterdir() if p.is_file() and p.stat().st_mode & 0o077)
    if wide:
        yield warn(
            "permissions",
            f"other users can read {', '.join(wide[:5])}: chmod 700 {folder}",
        )


def _python() -> Finding:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return fail("python", f"{version} is too old; 3.11 or later is needed")
    return ok("python", version)


def _disk(folder: Path) -> Iterator[Finding]:
    kind = filesystem(folder)
    if kind in VOLATILE:
        yield warn("file system", f"{kind}: everything is lost with the power")
    elif kind in REMOTE:
        yield warn("file system", f"{kind}: SQLite needs a local disk")
    else:
        yield ok("file system", kind or "unknown")
    free = _free_bytes(folder)
    text = f"{free / GIB:.1f} GiB free"
    if free < TOO_LITTLE_BYTES:
        yield fail("disk space", text)
    elif free < LITTLE_BYTES:
        yield warn("disk space", text)
    else:
        yield ok("disk space", text)


def disk_of(database: Path | None) -> Disk | None:
    """The disk of a store in a file; None: it is elsewhere, or does not exist yet."""
    if database is None or not database.is_file():
        return None
    used = 0
    for suffix in _STORE_FILES:
        with suppress(FileNotFoundError):
            used += os.stat(f"{database}{suffix}").st_size
    return Disk(used_bytes=used, free_bytes=_free_bytes(database.parent))


def _free_bytes(folder: Path) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def filesystem(folder: Path) -> str:
    """The file system's type by its Linux name; empty if unknown."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted:
            return after.split()[0]
    return ""


def _sync_ms(probe: Path, clock: Callable[[], int]) -> float:
    """The duration of one sync, averaged over several because the clock counts milliseconds."""
    descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        start = clock()
        for _ in range(SYNCS):
            os.write(descriptor, b"\0" * 4096)
            getattr(os, "fdatasync", os.fsync)(descriptor)
        return (clock() - start) / SYNCS
    finally:
        os.close(descriptor)


def _sync(took: float) -> Finding:
    text = f"{took:.2f} ms per sync"
    if took > SLOW_MS:
        return warn("disk sync", f"{text}: every write waits this long")
    if took < SUSPICIOUS_MS:
        return warn("disk sync", f"{text}: too fast for a disk, it may not sync at all")
    return ok("disk sync", text)
