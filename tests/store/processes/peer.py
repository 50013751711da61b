"""The other end of `program`: a process of its own on the same file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


class Peer:
    def __init__(self, folder: Path, *, has_checksums: bool = True) -> None:
        how = "with-checksums" if has_checksums else "plain"
        command = [sys.executable, "-m", "tests.store.processes.program", str(folder), how]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> Peer:
        assert self.answer() == "ready"
        return self

    def ask(self, do: str, **arguments: Any) -> Any:
        self.send(do, **arguments)
        return self.answer()

    def send(self, do: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.stderr_tail()
        return json.loads(line)

    def kill(self) -> list[Any]:
        """Kill it; returns its output that was not read yet."""
        self._process.kill()
        assert self._process.stdout is not None
        said = [json.loads(line) for line in self._process.stdout if line.endswith(b"\n")]
        self._release()
        return said

    def close(self) -> str:
        """Let it exit by itself; returns what it logged."""
        _, stderr = self._process.communicate(timeout=30)
        assert self._process.returncode == 0, stderr.decode()
        return stderr.decode()

    def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._release()

    def stderr_tail(self) -> str:
        self._process.kill()
        _, stderr = self._process.communicate()
        return stderr.decode()

    def _release(self) -> None:
        self._process.communicate()
