"""Ends a test server when its owner has exited, however it exited.

The owner starts this program beside its server and writes the server's process id to its standard
input, one line per change: 0 when there is none, negative for a whole group of processes. When the
owner exits, even by a SIGKILL, the pipe closes, and this program ends the server and removes its
folder. It is a separate process because the kernel's parent-death signal is also sent when only the
*thread* that forked ends.

Usage: server_guard.py FOLDER
"""

import os
import select
import shutil
import signal
import sys

PATIENCE_S = 5.0
STEP_S = 0.05


def main() -> None:
    owner = os.getppid()
    server = _last_pid_from(owner)
    if server:
        _end(server)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


def _last_pid_from(owner: int) -> int:
    """Return when the owner has exited. A forked child may hold the pipe open: check both."""
    received = b"0\n"
    while os.getppid() == owner:
        if not select.select([0], [], [], 1.0)[0]:
            continue
        chunk = os.read(0, 4096)
        if not chunk:
            break
        received += chunk
    return int(received.split(b"\n")[-2])


def _end(server: int) -> None:
    waited = 0.0
    try:
        os.kill(server, signal.SIGQUIT)
        while waited < PATIENCE_S:
            os.kill(server, 0)
            select.select([], [], [], STEP_S)
            waited += STEP_S
        os.kill(server, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    main()
