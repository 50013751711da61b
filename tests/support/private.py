"""What the private servers of tests have in common: a port that stays theirs, and a guard."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_GUARD = Path(__file__).with_name("server_guard.py")


def free_port() -> int:
    """Below the kernel's range for outgoing connections, so that it stays ours over restarts.

    Where the dice of a test are set, those of another process may be set alike.
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
