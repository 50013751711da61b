"""The process that the user starts: runs the writer and the fronts of a node, and restarts them.

It opens no store and serves nothing.  A front that exits takes only its own connections with it.
While the writer is down, fronts answer with status 503.  If the supervisor exits, so do all.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from penstock.domain.errors import PenstockError
from penstock.edge.node.control import (
    WRITER,
    Connect,
    ControlChannel,
    DrainNode,
    NodeAssignment,
    ProcessFailed,
    Ready,
    StopWriter,
    ToProcess,
)
from penstock.edge.serving.ready import ready_text, url_of
from penstock.ports.link import unpack_error
from penstock.settings import Settings
from penstock.settings.store_url import backend_of

COMMAND: Sequence[str] = (sys.executable, "-m", "penstock.edge.node.process")
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
STEADY_S = 30.0  # a process that was ready for this long starts again with the first pause
CLOSING_S = 15.0  # how much longer than `drain_ms` a process may take to exit
_EXIT_S = 1.0

_log = logging.getLogger("penstock.node")


def supervise(settings: Settings, *, fronts: int, on_ready: Callable[[str], None]) -> int:
    """Run until SIGINT or SIGTERM; returns the exit code."""
    with ExitStack() as stack:
        port, *_ = [
            stack.enter_context(one).getsockname()[1]
            for one in reserve_port(settings.server.host, settings.server.port)
        ]
        return asyncio.run(NodeSupervisor(settings, fronts=fronts, port=port).run(on_ready))


class NodeProcess:
    """One process at a time, as its supervisor sees it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = "writer" if number == WRITER else f"front-{number}"
        self.process: subprocess.Popen[bytes] | None = None
        self.channel: ControlChannel | None = None
        self.is_ready = False
        self.was_ready = False  # this process, or one before it
        self.pause_s = 0.0  # before the next start
        self.steady: asyncio.TimerHandle | None = None  # forgets earlier exits

    def start(self) -> None:
        self.channel, theirs = ControlChannel.pair()
        with theirs:
            fd = theirs.fileno()
            self.process = subprocess.Popen([*COMMAND, self.name, str(fd)], pass_fds=[fd])
        self.is_ready = False

    def send(self, message: ToProcess, *ends: socket.socket) -> None:
        if self.channel is not None:
            with suppress(OSError):  # it has exited, which is about to be noticed
                self.channel.send(message, *ends)

    def note_ready(self) -> None:
        self.is_ready = self.was_ready = True
        self.steady = asyncio.get_running_loop().call_later(STEADY_S, self._forget_exits)

    def _forget_exits(self) -> None:
        self.pause_s = 0.0

    def reap(self) -> int:
        """Clean up after its exit; returns the exit code."""
        assert self.process is not None
        assert self.channel is not None
        self.channel.close()
        try:
            self.process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        code = self.process.wait()
        self.process = self.channel = None
        if self.steady is not None:
            self.steady.cancel()
        self.pause_s = min(max(2 * self.pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        return code


class NodeSupervisor:
    def __init__(self, settings: Settings, *, fronts: int, port: int) -> None:
        self._settings = settings
        self._port = port
        self._writer = NodeProcess(WRITER)
        self._fronts = [NodeProcess(number + 1) for number in range(fronts)]
        self._is_stopping = False
        self._failure: BaseException | None = None  # why the node could not start
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()

    async def run(self, on_ready: Callable[[str], None]) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._ask_to_stop)
        try:
            await self._start_all()
            if not self._stop.is_set():
                store = backend_of(self._settings.store_url)
                url = url_of(self._settings.server, self._port)
                on_ready(ready_text(url, self._settings, store=store))
            await self._stop.wait()
        finally:
            await self._stop_all()
        return 0

    def _ask_to_stop(self) -> None:
        self._stop.set()
        self._changed.set()

    async def _start_all(self) -> None:
        # The writer first: it creates and migrates the store.
        for processes in ([self._writer], self._fronts):
            for process in processes:
                self._start(process)
            await self._until(
                lambda processes=processes: (
                    self._stop.is_set()  # type: ignore[misc]
                    or all(process.is_ready for process in processes)
                )
            )
            if self._stop.is_set():
                return

    async def _stop_all(self) -> None:
        self._is_stopping = True
        drain_s = self._settings.server.drain_ms / 1000 + CLOSING_S
        for process in (*self._fronts, self._writer):
            process.send(DrainNode())
        await self._exit(self._fronts, within_s=drain_s)
        self._writer.send(StopWriter())
        await self._exit([self._writer], within_s=drain_s)

    async def _exit(self, processes: list[NodeProcess], *, within_s: float) -> None:
        """Wait until they have exited; kills those that take too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._until(lambda: all(one.process is None for one in processes))
        for one in processes:
            if one.process is not None:
                _log.error("%s does not exit: killing it", one.name)
                one.process.kill()
                one.reap()

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for it; raises what keeps the node from starting."""
        while not condition():
            if self._failure is not None and not self._is_stopping:
                raise self._failure
            self._changed.clear()
            await self._changed.wait()

    def _start(self, process: NodeProcess) -> None:
        if self._is_stopping:
            return
        process.start()
        assert process.channel is not None
        asyncio.get_running_loop().add_reader(process.channel.fileno(), self._receive, process)
        process.send(NodeAssignment(process.number, self._settings, len(self._fronts), self._port))
        if process is not self._writer:
            self._connect(process)
            return
        for front in self._fronts:
            self._connect(front)

    def _connect(self, front: NodeProcess) -> None:
        """Give the writer and a front the ends of a new connection, if both are running."""
        if front.process is None or self._writer.process is None:
            return
        for_front, for_writer = socket.socketpair()
        with for_front, for_writer:
            front.send(Connect(front.number), for_front)
            self._writer.send(Connect(front.number), for_writer)

    def _receive(self, process: NodeProcess) -> None:
        assert process.channel is not None
        message, _ = process.channel.receive()
        match message:
            case Ready():
                if process.was_ready:
                    _log.warning("%s is running again", process.name)
                process.note_ready()
            case ProcessFailed():
                error = _error_of(message)
                if not process.was_ready:
                    self._failure = self._failure or error
                elif not self._is_stopping:
                    _log.error("%s cannot start: %s", process.name, error)
            case None:
                self._handle_exit(process)
        self._changed.set()

    def _handle_exit(self, process: NodeProcess) -> None:
        loop = asyncio.get_running_loop()
        assert process.channel is not None
        loop.remove_reader(process.channel.fileno())
        code = process.reap()
        if self._is_stopping:
            return
        # A killed process (a negative code) can be started again; and once a front answers
        # clients, the node stays up, even if another one cannot start.
        if code >= 0 and not any(one.was_ready for one in (process, *self._fronts)):
            text = f"{process.name} exited with {code} while it started"
            self._failure = self._failure or PenstockError(text)
            return
        _log.error(
            "%s exited with %d; starting it again in %g s", process.name, code, process.pause_s
        )
        loop.call_later(process.pause_s, self._start, process)


def _error_of(failed: ProcessFailed) -> BaseException:
    return unpack_error(failed.error) if failed.system is None else OSError(*failed.system)


def reserve_port(host: str, port: int) -> list[socket.socket]:
    """Bind a socket to each address of the host, without listening: fronts share the port with it.

    Raises OSError if another server listens there.  Port 0 becomes a free port.
    """
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    reserved: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((info[0], info[4]) for info in found):
            wanted = (address[0], reserved[0].getsockname()[1] if reserved else port, *address[2:])
            with _bound(family, wanted, shares_port=False) as alone:
                wanted = (address[0], alone.getsockname()[1], *address[2:])
            reserved.append(_bound(family, wanted, shares_port=True))
    except OSError:
        for one in reserved:
            one.close()
        raise
    return reserved


def _bound(family: int, address: tuple[object, ...], *, shares_port: bool) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        text = f"cannot listen on {address[0]}, port {address[1]}: {error.strerror}"
        raise OSError(error.errno, text) from error
    return made
