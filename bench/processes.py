"""Server processes of a run: started in a group of their own, always stopped, with their memory."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class StartError(Exception):
    """A server did not start; the text has the end of its output."""


class Server:
    """One server process with its children, logging into its folder."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self._log = folder / f"{Path(command[0]).name}.log"
        self._stop_signal = stop_signal
        with self._log.open("ab") as log:
            # A group of its own: Ctrl-C reaches only us, and we stop the servers in order.
            self._process = subprocess.Popen(
                list(command),
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=user,
                group=user,
                extra_groups=[] if user else None,
                start_new_session=True,
            )

    def wait_until(self, is_ready: Callable[[], bool], *, within: float = 60.0) -> float:
        """Waits for `is_ready`; returns how long that took."""
        started = time.monotonic()
        while not is_ready():
            if self._process.poll() is not None:
                raise StartError(f"ended with {self._process.returncode}: {self.end_of_log()}")
            if time.monotonic() - started > within:
                raise StartError(f"not ready within {within:.0f} s: {self.end_of_log()}")
            time.sleep(0.01)
        return time.monotonic() - started

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-2:])[-400:] or "without a word"

    def resident_mb(self) -> float:
        """Resident memory of the whole group, in MB (10^6 bytes); shared pages count for each."""
        page = os.sysconf("SC_PAGE_SIZE")
        pages = sum(_resident_pages(pid) for pid in _pids_of_group(self._process.pid))
        return pages * page / 1e6

    def stop(self, *, within: float = 20.0) -> None:
        _signal_group(self._process.pid, self._stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within)
        # Also after an orderly end: a child may outlive the process that we waited for.
        _signal_group(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _signal_group(group: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, what)


def _pids_of_group(group: int) -> list[int]:
    return [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _group_of(pid) == group
    ]


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
