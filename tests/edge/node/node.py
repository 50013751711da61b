"""A server of several processes, for a test to use and to kill."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from tests.edge.process import ServerProcess
from tests.support.waiting import eventually

FRONTS = 2
MODULES = {b"penstock.edge.node.process", b"tests.faults.launch_process"}


class Node(ServerProcess):
    def __init__(
        self, data: Path, settings: Mapping[str, object] | None = None, *, store: str | None = None
    ) -> None:
        super().__init__(data, {"server_processes": FRONTS, **(settings or {})}, store=store)

    def processes(self) -> dict[str, int]:
        """The ids of its processes by name: writer, front-1, front-2."""
        return children(self.pid)

    def signal(self, name: str, number: signal.Signals) -> int:
        """Returns the id of the process."""
        pid = self.processes()[name]
        os.kill(pid, number)
        return pid

    def kill(self, name: str) -> None:
        """Kill one process; returns when another has replaced it."""
        killed = self.signal(name, signal.SIGKILL)
        eventually(lambda: self.processes().get(name, killed) != killed)


def children(parent: int) -> dict[str, int]:
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has exited meanwhile
            continue
        if int(fields[1]) == parent and fields[0] != "Z" and not MODULES.isdisjoint(words):
            found[words[-3].decode()] = int(entry.name)
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
