"""Messages between the processes of a worker: frames over a socket."""

from __future__ import annotations

import select
import socket
import struct
import threading

import msgspec

from penstock.domain.message.attempt_log import LogLine
from penstock.worker.assignment import Assignment
from penstock.worker.claimed_job import JobAct, JobMessage

_LENGTH = struct.Struct(">I")


class RunJob(msgspec.Struct, frozen=True, tag=True):
    """To the sandbox: run this job."""

    job: JobMessage
    others: tuple[JobMessage, ...] = ()  # of a chunk: the jobs after the first
    is_chunk: bool = False


class Stop(msgspec.Struct, frozen=True, tag=True):
    """To the sandbox: the worker is shutting down; the handler sees it as `is_stopping`."""


class Interrupt(msgspec.Struct, frozen=True, tag=True):
    """To the sandbox: the job does not count any more; raise JobCancelled in its handler."""

    receipt: str  # that of its first job for a chunk


class Prepared(msgspec.Struct, frozen=True, tag=True):
    """From the sandbox: the application is loaded."""


class ExtendLease(msgspec.Struct, frozen=True, tag=True):
    """From the handler in the sandbox: extend the lease, and record progress."""

    lease_ms: int | None
    progress: str | None
    receipt: str | None = None  # of the job in the chunk; None: of all


class Logged(msgspec.Struct, frozen=True, tag=True):
    """From the handler in the sandbox: a line to keep with the attempt."""

    line: LogLine


class JobEnded(msgspec.Struct, frozen=True, tag=True):
    """From the sandbox: the act that ends the job."""

    act: JobAct
    acts: tuple[JobAct, ...] = ()  # of the jobs of a chunk
    memory_bytes: int = 0  # resident memory of the sandbox


class ProcessAssignment(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """To a worker process or a sandbox: what it runs."""

    app: str  # module:name
    url: str | None = None  # in place of the application's own URL
    key: str | None = None
    work: Assignment
    labels: dict[str, str] = {}  # the name in the registry
    table_fd: int = -1
    has_duties: bool = False
    leftovers: tuple[JobAct, ...] = ()  # acts that its predecessor could not report
    is_successor: bool = False  # report the leftovers, then exit
    log_level: str = "info"
    log_format: str = "text"


class Drain(msgspec.Struct, frozen=True, tag=True):
    """To a worker process: exit within this time."""

    within_ms: int


class Finish(msgspec.Struct, frozen=True, tag=True):
    """To a worker process in a burst: no other process has jobs; exit once there are none."""


class Working(msgspec.Struct, frozen=True, tag=True):
    """From a worker process: it has reported the leftovers, and now claims jobs."""

    queues: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # warnings about its assignment; the same for all processes


class WaitingForStore(msgspec.Struct, frozen=True, tag=True):
    """From a worker process: why the store does not answer; None once it answers again."""

    error: str | None


class Dry(msgspec.Struct, frozen=True, tag=True):
    """From a worker process in a burst: whether it has run out of jobs."""

    is_dry: bool


Frame = (
    RunJob
    | Stop
    | Interrupt
    | Prepared
    | ExtendLease
    | Logged
    | JobEnded
    | ProcessAssignment
    | Drain
    | Finish
    | Working
    | WaitingForStore
    | Dry
)
_decoder: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


class Wire:
    """Sends and receives frames; both ends are ours, so frames are trusted to be complete."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.Lock()

    def send(self, frame: Frame) -> None:
        data = msgspec.msgpack.encode(frame)
        with self._lock:
            self._end.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> Frame | None:
        """Return the next frame; None if the other end is closed or its process has exited."""
        try:
            length = self._exactly(_LENGTH.size)
            data = length and self._exactly(*_LENGTH.unpack(length))
        except OSError:
            return None
        return _decoder.decode(data) if data else None

    def has_input(self, *, within_s: float) -> bool:
        """Whether a frame can be received, or the other end was closed."""
        return bool(select.select([self._end], [], [], within_s)[0])

    def close(self) -> None:
        self._end.close()

    def _exactly(self, count: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < count:
            part = self._end.recv(count - len(parts))
            if not part:
                return None
            parts += part
        return bytes(parts)
