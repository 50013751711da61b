"""A real ext4 in a file that can lose power, fill up or turn read-only; needs root and loops."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SHUTDOWN = 0x8004587D  # _IOR('X', 125, u32)
WITHOUT_FLUSHING_THE_LOG = 2
MEGABYTE = 1 << 20


class KernelDisk:
    """Use as a context manager; `mount` is where the broker keeps its data."""

    def __init__(self, folder: Path, *, size_mb: int = 96, block_bytes: int = 4096) -> None:
        self.image = folder / "disk.img"
        self.mount = folder / "mounted"
        self._size_mb = size_mb
        self._block_bytes = block_bytes

    def __enter__(self) -> KernelDisk:
        if os.geteuid() != 0:
            raise AssertionError("the Full fault tests mount a disk of their own: run them as root")
        self.mount.mkdir()
        with self.image.open("wb") as image:
            image.truncate(self._size_mb * MEGABYTE)
        _run("mkfs.ext4", "-q", "-F", "-b", str(self._block_bytes), str(self.image))
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        # Lazily: a broker that a failed test left behind must not keep the mount.
        _run("umount", "--lazy", str(self.mount))

    def cut_power(self) -> None:
        """From here on nothing more reaches the disk, the file system's own journal included."""
        directory = os.open(self.mount, os.O_RDONLY)
        try:
            flags = struct.pack("I", WITHOUT_FLUSHING_THE_LOG)
            fcntl.ioctl(directory, SHUTDOWN, flags)
        finally:
            os.close(directory)

    def turn_read_only(self) -> None:
        """What ext4 does by itself when it meets an error (errors=remount-ro)."""
        device = _run("findmnt", "-n", "-o", "SOURCE", str(self.mount)).strip()
        Path(f"/sys/fs/ext4/{Path(device).name}/trigger_fs_error").write_text("1")

    def repair(self) -> None:
        """After the broker is gone: unmount, check, mount."""
        _run("umount", str(self.mount))
        subprocess.run(["fsck.ext4", "-y", str(self.image)], capture_output=True, check=False)
        self._mount()

    def fill(self) -> Path:
        """Leave no room at all; removing the returned file makes room again."""
        ballast = self.mount / "ballast"
        for chunk in (MEGABYTE, 4096, 1):
            with ballast.open("ab", buffering=0) as file:
                try:
                    while True:
                        file.write(b"\0" * chunk)
                except OSError:
                    continue
        return ballast

    @contextmanager
    def rival(self) -> Iterator[None]:
        """Another program appends to a file here, also on a full disk; then removes it."""
        path, is_over = self.mount / "rival", threading.Event()

        def append() -> None:
            with path.open("ab", buffering=0) as file:
                while not is_over.wait(0.0003):
                    with suppress(OSError):
                        file.write(b"\0" * 4096)

        writer = threading.Thread(target=append)
        writer.start()
        try:
            yield
        finally:
            is_over.set()
            writer.join()
            path.unlink()

    def _mount(self) -> None:
        _run("mount", "-o", "loop,errors=remount-ro", str(self.image), str(self.mount))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
