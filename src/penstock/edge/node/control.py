"""Messages between the supervisor of a node and its processes, over a socket pair.

The socket keeps the bounds of messages and can carry file descriptors: the supervisor gives a front
and the writer the two ends of their connection.
"""

from __future__ import annotations

import socket

import msgspec

from penstock.ports.link import PackedError
from penstock.settings import Settings

WRITER = 0  # the number of the writer; fronts are numbered from 1
_LONGEST = 1 << 17  # bytes of a message


class NodeAssignment(msgspec.Struct, frozen=True, tag=True):
    """To a new process: what it is."""

    number: int
    settings: Settings
    fronts: int  # how many fronts the node has
    port: int  # for fronts: where they listen


class Connect(msgspec.Struct, frozen=True, tag=True):
    """To the writer and to a front: one end of their connection comes with this message."""

    front: int


class DrainNode(msgspec.Struct, frozen=True, tag=True):
    """To every process: the node is stopping.  A front exits when its requests are answered."""


class StopWriter(msgspec.Struct, frozen=True, tag=True):
    """To the writer: all fronts have exited."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """From a process: it does its work."""


class ProcessFailed(msgspec.Struct, frozen=True, tag=True):
    """From a process: why it exits."""

    error: PackedError
    system: tuple[int, str, str | None] | None = None  # an error of the system: number, text, file


ToProcess = NodeAssignment | Connect | DrainNode | StopWriter
FromProcess = Ready | ProcessFailed
_decode = msgspec.msgpack.Decoder(ToProcess | FromProcess).decode


class ControlChannel:
    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    def pair(cls) -> tuple[ControlChannel, socket.socket]:
        """Our channel, and the end for the process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: ToProcess | FromProcess, *ends: socket.socket) -> None:
        """Raises OSError if the other process has exited."""
        data = msgspec.msgpack.encode(message)
        socket.send_fds(self._end, [data], [end.fileno() for end in ends])

    def receive(self) -> tuple[ToProcess | FromProcess | None, list[socket.socket]]:
        """The next message and its sockets; None: the other process has exited."""
        try:
            data, fds, _, _ = socket.recv_fds(self._end, _LONGEST, 1)
        except ConnectionError:
            return None, []
        ends = [socket.socket(fileno=fd) for fd in fds]
        return (_decode(data) if data else None), ends

    def close(self) -> None:
        self._end.close()
