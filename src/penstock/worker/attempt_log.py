"""What a handler logs and prints: captured in its thread or task, sent while it runs.

    logging, print ──▶ buffer of the job ──▶ (a sandbox's wire) ──▶ LogSender ──▶ store

Only jobs with `logs="keep"` have a buffer.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TextIO

import msgspec

from penstock.api.jobs.attempt_logs import LineIn, LogPart
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.attempt_log import LogLine
from penstock.ports.clock import Clock
from penstock.worker.application import Application
from penstock.worker.claimed_job import ClaimedJob, LogBuffer

_log = logging.getLogger("penstock.worker")

EVERY_MS = 1_000  # how often the lines of running jobs are sent
_MOST_BYTES = DEFAULT_LIMITS.max_log_bytes
_LAST_BYTES = 1_024  # left for the line that says that the rest is missing, and for brackets
_MOST_LINE_CHARS = 8 * 1024
_MOST_PARTS = 100  # of one request
_REST = "the log of this attempt has reached its limit; the rest was not kept"
FindLog = Callable[[], LogBuffer | None]


class JobLogBuffer:
    """The lines of one attempt that were not sent yet.  Any thread of the job may add lines."""

    def __init__(self, clock: Clock, *, on_line: Callable[[LogLine], None] | None = None) -> None:
        """`on_line`: takes each line instead of the buffer."""
        self._clock = clock
        self._on_line = on_line
        self._lock = threading.Lock()
        self._lines: list[LogLine] = []
        self._bytes = _LAST_BYTES
        self._is_full = False
        self._begun: dict[str, str] = {}  # printed text without a newline, by stream
        self.seq = 0  # of the last part

    def add(self, level: str, source: str, text: str) -> None:
        self.append(LogLine(self._clock.now(), level, source, text[:_MOST_LINE_CHARS]))

    def append(self, line: LogLine) -> None:
        with self._lock:
            if self._is_full:
                return
            self._bytes += len(msgspec.json.encode(line)) + 1
            if self._bytes > _MOST_BYTES:
                self._is_full = True
                line = LogLine(line.at, "warning", "penstock", _REST)
            if self._on_line is None:
                self._lines.append(line)
            else:
                self._on_line(line)

    def print(self, stream: str, text: str) -> None:
        *lines, rest = (self._begun.pop(stream, "") + text).split("\n")
        if rest:
            self._begun[stream] = rest
        for line in lines:
            self.add("print", stream, line)

    def end(self) -> None:
        """Add what was printed without a newline."""
        for stream, text in list(self._begun.items()):
            self.add("print", stream, text)
        self._begun.clear()

    def take(self) -> list[LogLine]:
        with self._lock:
            lines, self._lines = self._lines, []
        return lines


class LogSender:
    """Sends what jobs have logged: every second, and before their ends are reported."""

    def __init__(self, keep: Callable[[Sequence[LogPart]], list[str]]) -> None:
        self._keep = keep
        self._jobs: list[ClaimedJob] = []
        self._unsent: list[LogPart] = []
        self._is_rejected = False
        self.next_at = 2**63

    def watch(self, jobs: Sequence[ClaimedJob], now: int) -> None:
        self._jobs += [job for job in jobs if job.log is not None]
        if self._jobs:
            self.next_at = min(self.next_at, now + EVERY_MS)

    def send(self, now: int) -> None:
        """Raises StoreUnavailable or OSError if the lines are to be sent again."""
        if not self._jobs:
            return
        self._gather()
        self.next_at = now + EVERY_MS if self._jobs else 2**63
        while self._unsent:
            try:
                results = self._keep(self._unsent[:_MOST_PARTS])
            except (StoreUnavailable, OSError):
                raise
            except PenstockError as error:  # an older server, or a key without the role
                self._reject(str(error))
            else:
                for result in set(results) - {"kept", "lease_lost"}:
                    self._reject(result)
            del self._unsent[:_MOST_PARTS]

    def _gather(self) -> None:
        for job in list(self._jobs):
            log = job.log
            assert log is not None
            if job.place < 0 or job.stop_reason is not None:
                self._jobs.remove(job)
            lines = [
                LineIn(at=line.at, text=line.text, level=line.level, source=line.source)
                for line in log.take()
            ]
            if lines:
                log.seq += 1
                self._unsent.append(LogPart(job.receipt, log.seq, lines))

    def _reject(self, text: str) -> None:
        if not self._is_rejected:
            _log.warning("cannot store the logs of jobs: %s", text)
        self._is_rejected = True


class _Capture(logging.Handler):
    def __init__(self, find: FindLog) -> None:
        super().__init__()
        self._find = find

    def emit(self, record: logging.LogRecord) -> None:
        log = self._find()
        if log is None:
            return
        with suppress(Exception):  # the arguments do not fit the format
            text = self.format(record)
            log.add(record.levelname.lower(), record.name, text)


class _Tee:
    """A standard stream whose text also goes to the log of the running job."""

    def __init__(self, stream: TextIO, name: str, find: FindLog) -> None:
        self._stream = stream
        self._name = name
        self._find = find

    def write(self, text: str) -> int:
        log = self._find()
        if log is not None:
            log.print(self._name, text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def capture_logs(app: Application) -> None:
    """From now on, give what the application's jobs log and print to their buffers."""
    handlers = app.job_handlers
    found = [handlers.find(kind) for kind in handlers.kinds]
    if any(handler is not None and handler.keeps_logs for handler in found):
        _capture(app.running_log)


def _capture(find: FindLog) -> None:
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, _Capture):
            root.removeHandler(handler)
    root.addHandler(_Capture(find))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, _Tee):
            setattr(sys, name, _Tee(stream, name, find))
