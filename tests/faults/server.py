"""A real broker process for a test to start, stop, kill and pause; it never outlives the test."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.faults.control import Control
from tests.faults.history import Outcome
from tests.faults.wire import Wire
from tests.support.private_servers import free_port

ROOT = Path(__file__).parents[2]
START_S = 120.0
EXIT_POWER_CUT = 77
EXIT_ORPHANED = 78


class Server:
    """`store` is a data directory, or a postgresql:// address; `options` are launch.py's."""

    def __init__(
        self,
        store: Path | str,
        log: Path,
        *,
        options: dict[str, Any] | None = None,
        processes: int = 1,
    ) -> None:
        self.store = store
        self.port = free_port()
        self.options = dict(options or {})
        self.processes = processes
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None

    def start(self, *, wait: bool = True, within_s: float = START_S) -> float:
        """Start it; returns the seconds until it was ready."""
        assert self._process is None or self._process.poll() is not None, "it already runs"
        began = time.monotonic()
        self.close_control()
        self._control = Control()
        with self.log.open("ab") as log, self._control.theirs as control:
            self._process = subprocess.Popen(
                self._command(control.fileno()),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[control.fileno()],
                start_new_session=True,
            )
        return self.wait_until_ready(within_s, began) if wait else 0.0

    def cpu_s(self) -> float:
        """Its CPU seconds since its start."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def wait_until_ready(self, within_s: float = START_S, began: float | None = None) -> float:
        began = time.monotonic() if began is None else began
        wire = Wire(self.port, timeout=1.0)
        while time.monotonic() < began + within_s:
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.poll()}\n{self.stderr_tail()}")
            if wire.call("GET", "/readyz").outcome is Outcome.OK:
                wire.close()
                return time.monotonic() - began
            wire.close()
            time.sleep(0.01)
        raise AssertionError(f"not ready within {within_s} s\n{self.where_it_is()}")

    def steer(self, **order: Any) -> dict[str, Any]:
        """Steer the faults inside, e.g. steer(set={"is_full": True}); {} once it has lost power."""
        assert self._control is not None
        return self._control.steer(order)

    def cut_power(self, **how: Any) -> None:
        self.steer(set=how, cut=True)
        code = self.process.wait(60)
        assert code == EXIT_POWER_CUT, f"it ended with {code}, not cut\n{self.stderr_tail()}"

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(60)

    def terminate(self, *, within_s: float) -> tuple[int | None, float]:
        """Send SIGTERM; returns its exit code (None: still running) and how long it took."""
        began = time.monotonic()
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        return self.process.poll(), time.monotonic() - began

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def wait_until_paused(self, within_s: float = 5.0) -> None:
        """A signal is asynchronous: until every thread has stopped, one may still answer."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            states = [
                stat.read_text().rpartition(")")[2].split()[0] for stat in tasks.glob("*/stat")
            ]
            if set(states) == {"T"}:
                return
            time.sleep(0.002)
        raise AssertionError(f"not paused within {within_s} s")

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait_for_end(self, within_s: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(within_s)
        return None

    def stderr_tail(self, count: int = 4000) -> str:
        return self.log.read_text(errors="replace")[-count:] if self.log.exists() else ""

    def where_it_is(self) -> str:
        """The end of its log, and what each of its threads is doing."""
        if self.process.poll() is None:
            self.signal(signal.SIGUSR1)
            time.sleep(0.2)
        return self.stderr_tail(8000)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was never started"
        return self._process

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self.close_control()
        if error is not None:
            print(f"--- end of the broker's log ---\n{self.stderr_tail()}")

    def close_control(self) -> None:
        """Close the control socket: the broker exits then."""
        if self._control is not None:
            self._control.close()
            self._control = None

    def _command(self, control: int) -> list[str]:
        kind = "--store" if isinstance(self.store, str) else "--data"
        serve = ["serve", kind, str(self.store), "--port", str(self.port)]
        serve += ["--processes", str(self.processes)]
        launch = [sys.executable, "-m", "tests.faults.launch"]
        return [*launch, json.dumps(self.options), str(control), *serve]
