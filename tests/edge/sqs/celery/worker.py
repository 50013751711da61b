"""A Celery worker in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.edge.process import ROOT
from tests.edge.sqs.celery import application
from tests.support.waiting import eventually

EXIT_S = 20.0
_APP = "tests.edge.sqs.celery.worker_app"


class Worker:
    """One child process, so that tasks run one after the other."""

    def __init__(
        self, broker: str, folder: Path, options: dict[str, Any], queues: Sequence[str]
    ) -> None:
        self._env = {
            application.BROKER: broker,
            application.FOLDER: str(folder),
            application.OPTIONS: json.dumps(options),
        }
        self._queues = ",".join(queues)
        self._log = folder / "worker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "celery", "-A", _APP, "worker"),
                    *("--pool", "prefork", "--concurrency", "1", "-Q", self._queues),
                    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
                    *("--loglevel", "INFO"),
                ],
                cwd=ROOT,
                env={**os.environ, **self._env, "PYTHONPATH": str(ROOT / "src")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def stop(self, *, meanwhile: Callable[[], None]) -> None:
        """Stop as an operator would: running tasks finish, the others are given back."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        eventually(lambda: "Warm shutdown" in self.log_tail())
        meanwhile()
        self._process.wait(EXIT_S)

    def kill(self) -> None:
        """Kill it with its child, without warning."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(EXIT_S)

    def log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.log_tail())
        self.kill()
