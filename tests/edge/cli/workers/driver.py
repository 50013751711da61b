"""A driver for `penstock worker` as a real process with children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

ROOT = Path(__file__).parents[4]
APP = "tests.edge.cli.workers.application:app"
EXIT_S = 20.0


class WorkerProcess:
    def __init__(
        self, url: str, log: Path, *flags: str, app: str = APP, folder: Path = ROOT
    ) -> None:
        self.log = log
        self._folder = folder
        where = "--server" if url.startswith("http") else "--store"
        self._command = [sys.executable, "-m", "penstock", "worker", app, where, url, "--json"]
        self._command += flags
        self._process: subprocess.Popen[str] | None = None
        self.ready: dict[str, Any] = {}
        self.children: list[int] = []

    def start(self) -> Self:
        """Return when it reports that it is ready, or has exited."""
        self.start_only()
        self.wait_until_ready()
        return self

    def start_only(self) -> None:
        assert self._process is None or self._process.poll() is not None, "it already runs"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        assert self.running.stdout is not None
        line = self.running.stdout.readline()
        if line:
            self.ready = msgspec.json.decode(line)
            self.children = self.ready["processes"]

    @property
    def running(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def send(self, number: signal.Signals) -> None:
        self.running.send_signal(number)

    def kill_all(self) -> None:
        """Kill the supervisor, its children and their sandboxes, like a crash of the machine."""
        os.killpg(self.running.pid, signal.SIGKILL)
        self.wait()

    def wait(self, within_s: float = EXIT_S) -> int:
        return self.running.wait(within_s)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.running.poll() is None:
            self.send(signal.SIGTERM)
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.running.kill()
                raise
        assert self.running.stdout is not None
        self.running.stdout.close()
