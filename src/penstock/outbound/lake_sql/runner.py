"""Runs each statement in a separate process, and kills it at the time limit."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import IO

import msgspec

from penstock.domain.duration import duration_text
from penstock.domain.errors import ShuttingDown, SqlFailed, SqlTimeout
from penstock.domain.lake.sql import SqlLimits, SqlResult
from penstock.outbound.lake_sql.protocol import SqlReply, SqlRequest

COMMAND: Sequence[str] = (sys.executable, "-m", "penstock.outbound.lake_sql.process")


class SqlProcesses:
    """`lake` and `tables` are folders, or URLs of object stores."""

    def __init__(self, lake: str, tables: str, *, command: Sequence[str] = COMMAND) -> None:
        self._lake = lake
        self._tables = tables
        self._command = command
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_closed = False

    def is_installed(self) -> bool:
        return all(find_spec(name) is not None for name in ("duckdb", "pyarrow"))

    def run(self, statement: str, limits: SqlLimits) -> SqlResult:
        request = SqlRequest(
            statement=statement, limits=limits, lake=self._lake, tables=self._tables
        )
        process = self._start()
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(limits.timeout_ms / 1000, stop)
        timer.daemon = True
        timer.start()
        try:
            answer = _ask(process, msgspec.json.encode(request))
        finally:  # even after Ctrl-C
            timer.cancel()
            self._end(process)
        if not answer and is_late.is_set():
            raise SqlTimeout(
                f"the statement took longer than {duration_text(limits.timeout_ms)}; read fewer "
                "days or columns, or raise sql.timeout_ms"
            )
        return self._result(answer, process.returncode)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for process in self._running:
                process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise ShuttingDown("the server is shutting down")
            # A session of its own: Ctrl-C is for this process, which then kills that one.
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        with self._lock:
            self._running.discard(process)

    def _result(self, answer: bytes, code: int) -> SqlResult:
        if self._is_closed:
            raise ShuttingDown("the server is shutting down")
        try:
            reply = msgspec.json.decode(answer, type=SqlReply)
        except msgspec.MsgspecError:
            raise SqlFailed(
                f"the process of the statement ended with code {code}, probably for lack of "
                "memory; read fewer days or columns"
            ) from None
        if reply.result is None:
            raise SqlFailed(reply.error)
        return reply.result


def _ask(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    with suppress(BrokenPipeError):  # it was killed, or could not start
        _pipe(process.stdin).write(request + b"\n")
        _pipe(process.stdin).flush()
    return _pipe(process.stdout).read()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
