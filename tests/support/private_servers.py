"""Shared parts of the private test servers: a stable port, and a guard process."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_GUARD = Path(__file__).with_name("server_guard.py")


def free_port() -> int:
    """A port below the kernel's range for outgoing connections, so that it stays free for us.

    It uses system randomness: if a test seeds `random`, another process may have the same seed.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 200):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free TCP port between 20000 and 32000")


def start_guard(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _GUARD, folder],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
