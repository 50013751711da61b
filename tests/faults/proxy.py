"""A TCP proxy on loopback that loses, delays, holds or resets what passes through it."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
import time
from enum import StrEnum

CHUNK = 65536
SO_ATTACH_FILTER = 26  # of Linux; Python has no name for it
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)  # BPF: keep 0 bytes of each packet
_filter = ctypes.create_string_buffer(_RETURN_NOTHING)


class Weather(StrEnum):
    FAIR = "fair"
    BLACKHOLE = "blackhole"  # everything is lost without a notice
    ANSWERS_LOST = "answers lost"  # requests arrive, answers vanish
    HELD = "held"  # nothing moves until the weather changes, then it all arrives
    SLOW = "slow"


class Proxy:
    """Use as a context manager; `port` is where clients connect."""

    def __init__(self, target: int, *, delay_s: float = 0.05) -> None:
        self.weather = Weather.FAIR
        self._delay_s = delay_s
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._cut: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._listener.close()
        self.weather = Weather.FAIR
        with self._lock:
            self._open |= self._cut
        self.reset()

    def freeze(self) -> set[int]:
        """Existing connections pass nothing any more, and neither end is notified, not even
        of the other one's close; new connections work.  Returns our ports of them at the target.
        """
        with self._lock:
            frozen, self._open = self._open, set()
            self._cut |= frozen
        return {end.getsockname()[1] for end in frozen} - {self.port}

    def pull_cable(self) -> set[int]:
        """As `freeze`, and the kernel does not answer for the lost ends: no ACK, no keepalive."""
        ports = self.freeze()
        for end in self._cut:
            end.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, drop_everything())
        return ports

    def reset(self) -> int:
        """End every connection with an RST on both sides; returns how many there were."""
        with self._lock:
            victims, self._open = self._open, set()
        for victim in victims:
            with contextlib.suppress(OSError):
                # No lingering: close() sends RST instead of FIN.
                victim.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                victim.shutdown(socket.SHUT_RD)
            with contextlib.suppress(OSError):
                victim.close()
        return len(victims)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for source, sink, is_answer in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self._pump, args=(source, sink, is_answer), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        tainted = False
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if self._is_cut(source):
                    return
                # A stream cannot have a hole: once something is lost, the rest is lost, too.
                tainted = tainted or self._vanishes(is_answer)
                if not tainted:
                    self._wait_while(Weather.HELD)
                    if self.weather is Weather.SLOW:
                        time.sleep(self._delay_s)
                    sink.sendall(data)
        self._wait_while(Weather.HELD, Weather.BLACKHOLE)  # a FIN is delayed like the rest
        with self._lock:
            # After a reset: a FIN must not precede the RST.
            ends = self._open & {source, sink}
            self._open -= ends
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _is_cut(self, end: socket.socket) -> bool:
        with self._lock:
            return end in self._cut

    def _vanishes(self, is_answer: bool) -> bool:
        if self.weather is Weather.BLACKHOLE:
            return True
        return is_answer and self.weather is Weather.ANSWERS_LOST

    def _wait_while(self, *weathers: Weather) -> None:
        while self.weather in weathers and not self._closed:
            time.sleep(0.01)


def drop_everything() -> bytes:
    """A filter (struct sock_fprog) that drops each packet before TCP sees it."""
    return struct.pack("HP", 1, ctypes.addressof(_filter))
