"""Processes of this machine: starts those of a fleet, finds and signals running ones.

A process is identified by pid and start time.  A pid alone is not enough: it is reused, and a
signal would hit an unrelated process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from penstock.domain.scaling.fleet import Processes
from penstock.ports.scaling import FLEET, REPLICA

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PS_TIMEOUT_S = 10.0
_STDERR = 2
_REPLICA_VARIABLE = "PENSTOCK_REPLICA"


def start_time(pid: int) -> str | None:
    """When a running process started; None: it does not exist, or it has ended."""
    if not _BOOT.exists():
        return _start_time_by_ps(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name before it, in parentheses, may contain anything.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{_boot()}:{fields[19]}"


def orphans(group: int, mark: str) -> list[int]:
    """Processes of a group whose leader is gone, identified by an environment variable.

    The group's number alone may have been reused.  Without /proc none are found.
    """
    if start_time(group) is not None:
        return []  # a pid is not reused while its group exists, so the old group is gone
    return [pid for pid in _pids() if _group_of(pid) == group and _is_marked(pid, mark)]


def send(pid: int, started: str, number: signal.Signals, *, to_group: bool = False) -> bool:
    """Signal exactly this process, or its group; False: it is gone."""
    if start_time(pid) != started:
        return False
    with suppress(ProcessLookupError):
        (os.killpg if to_group else os.kill)(pid, number)
        return True
    return False


def _pids() -> list[int]:
    if not _BOOT.exists():
        return []
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _group_of(pid: int) -> int | None:
    """None: the process does not exist, or it has ended."""
    try:
        return os.getpgid(pid) if start_time(pid) is not None else None
    except OSError:
        return None


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


@cache
def _boot() -> str:
    """The id of the current boot, because each boot counts pids from the start."""
    return _BOOT.read_text().strip()


def _start_time_by_ps(pid: int) -> str | None:
    try:
        listed = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            timeout=_PS_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    state, _, started = listed.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


class Launch:
    def __init__(
        self, fleet: str, spec: Processes, *, queues: tuple[str, ...], store_url: str
    ) -> None:
        """`store_url`: where workers get their jobs, unless the fleets file names another URL."""
        self._fleet = fleet
        self._spec = spec
        self._queues = spec.queues or queues
        self._url = spec.url or store_url

    def start(self, replica: str) -> subprocess.Popen[bytes]:
        """Raises OSError."""
        return subprocess.Popen(
            self.command(replica),
            cwd=self._spec.folder,
            env={**os.environ, **self._spec.env, **self.environment(replica)},
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,  # keeps the autoscaler's own output clean
            start_new_session=True,  # Ctrl-C reaches only the autoscaler, which then drains them
        )

    def command(self, replica: str) -> list[str]:
        spec = self._spec
        if spec.app is None:
            return list(spec.run)
        flags = [
            *("--queues", ",".join(self._queues)),
            *("--label", f"{FLEET}={self._fleet}"),
            *("--label", f"{REPLICA}={replica}"),
            *("--drain-for", f"{spec.drain_ms}ms"),
        ]
        if spec.slots is not None:
            flags += ["--slots", str(spec.slots)]
        return [sys.executable, "-m", "penstock", "worker", spec.app, *flags, *spec.arguments]

    @staticmethod
    def mark(replica: str) -> str:
        """The environment variable that marks every process of this replica."""
        return f"{_REPLICA_VARIABLE}={replica}"

    def environment(self, replica: str) -> dict[str, str]:
        variables = {"PENSTOCK_FLEET": self._fleet, _REPLICA_VARIABLE: replica}
        if self._spec.app is not None:
            # Not on the command line, where all users could read its password.
            is_server = self._url.startswith(("http://", "https://"))
            name = "PENSTOCK_WORKER_SERVER" if is_server else "PENSTOCK_WORKER_STORE"
            variables[name] = self._url
        return variables
