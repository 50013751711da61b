"""What the processes of a worker say to each other: frames over a socket."""

from __future__ import annotations

import select
import socket
import struct
import threading

import msgspec

from penstock.ports.work import Work, WorkAct
from penstock.worker.assignment import Order

_LENGTH = struct.Struct(">I")


class Job(msgspec.Struct, frozen=True, tag=True):
    """To the sandbox: do this."""

    work: Work
    deadline: int | None


class Stop(msgspec.Struct, frozen=True, tag=True):
    """To the sandbox: the worker wants to end; the handler may look at it."""


class Prepared(msgspec.Struct, frozen=True, tag=True):
    """From the sandbox: the application is loaded."""


class Told(msgspec.Struct, frozen=True, tag=True):
    """From the handler in the sandbox."""

    lease_ms: int | None
    progress: str | None


class Ended(msgspec.Struct, frozen=True, tag=True):
    """From the sandbox: what is to be done with the job's lease."""

    act: WorkAct
    memory_bytes: int = 0  # resident memory of the sandbox


class Errand(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """To a worker process: what it is for."""

    app: str  # module:name
    url: str | None = None  # in place of the application's own
    key: str | None = None
    order: Order
    labels: dict[str, str] = {}  # in the registry
    table_fd: int = -1
    has_duties: bool = False
    left: tuple[WorkAct, ...] = ()  # what a dead one before it could not tell any more
    is_heir: bool = False  # tell that, and end
    log_level: str = "info"
    log_format: str = "text"


class Drain(msgspec.Struct, frozen=True, tag=True):
    """To a worker process: end within that time."""

    within_ms: int


class Finish(msgspec.Struct, frozen=True, tag=True):
    """To a worker process in a burst: no other process has work, end as soon as you have none."""


class Working(msgspec.Struct, frozen=True, tag=True):
    """From a worker process: it has told what was left to it, and claims."""

    queues: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # about its order; the same for all processes


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """From a worker process: why its store does not answer; None: it answers again."""

    error: str | None


class Dry(msgspec.Struct, frozen=True, tag=True):
    """From a worker process in a burst: whether it has run out of work."""

    is_dry: bool


Frame = Job | Stop | Prepared | Told | Ended | Errand | Drain | Finish | Working | Waiting | Dry
_decoder: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


class Wire:
    """Both ends of it are ours, so what arrives is trusted to be whole."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.Lock()

    def send(self, frame: Frame) -> None:
        data = msgspec.msgpack.encode(frame)
        with self._lock:
            self._end.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> Frame | None:
        """None: the other end is closed, or its process is dead."""
        try:
            length = self._exactly(_LENGTH.size)
            data = length and self._exactly(*_LENGTH.unpack(length))
        except OSError:
            return None
        return _decoder.decode(data) if data else None

    def has_input(self, *, within_s: float) -> bool:
        """Something can be received, be it the end."""
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
