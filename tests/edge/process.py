"""A server in its own process, to test signals, memory and its log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
EXIT_S = 20.0


class ServerProcess:
    """Settings are passed in the environment: `{"server_idle_timeout_ms": 500}`."""

    def __init__(
        self, data: Path, settings: Mapping[str, object] | None = None, *, store: str | None = None
    ) -> None:
        self.data = data
        self.url = ""
        self.log = data.with_name(data.name + ".log")
        values = {"data": data, "server_port": 0, **(settings or {})}
        if store is not None:
            values["store_url"] = store
        self._env = {f"PENSTOCK_{name.upper()}": str(value) for name, value in values.items()}
        self._process: subprocess.Popen[str] | None = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def is_started(self) -> bool:
        return self._process is not None

    @property
    def is_alive(self) -> bool:
        return self._running.poll() is None

    @property
    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def start(self) -> Self:
        """Start; returns when it reports that it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "penstock", "serve"],
                cwd=ROOT,
                env={**os.environ, **self._env, "PYTHONPATH": str(ROOT / "src")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(r"https?://127\.0\.0\.1:\d+", line)
            if found is not None:
                self.url = found[0]
                return self
        raise AssertionError(f"it ended with {self._process.wait(EXIT_S)}\n{self.log_tail()}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to exit; returns its exit code."""
        self._running.send_signal(number)
        code = self._running.wait(EXIT_S)
        self._close()
        return code

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(EXIT_S)
            self._close()

    def _close(self) -> None:
        assert self._running.stdout is not None
        self._running.stdout.close()

    @property
    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "it was never started"
        return self._process
