"""A process of a node, as it sees its supervisor."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from penstock.edge.node.control import Connect, ControlChannel, DrainNode, Ready, StopWriter

EXIT_ORPHANED = 3

_log = logging.getLogger("penstock.node")

OnConnect = Callable[[Connect, socket.socket], Coroutine[Any, Any, None]]


class Child:
    """Follows the supervisor's orders on the event loop; exits if the supervisor has exited."""

    def __init__(self, channel: ControlChannel) -> None:
        self._channel = channel
        self._connecting: set[asyncio.Task[None]] = set()
        self.draining = asyncio.Event()
        self.stopping = asyncio.Event()

    def listen(self, *, on_connect: OnConnect) -> None:
        self._on_connect = on_connect
        asyncio.get_running_loop().add_reader(self._channel.fileno(), self._receive)

    def report_ready(self) -> None:
        self._channel.send(Ready())

    def _receive(self) -> None:
        message, ends = self._channel.receive()
        match message:
            case None:
                _log.error("the supervisor has exited: shutting down")
                # As if killed: nothing unacknowledged needs to be finished.
                os._exit(EXIT_ORPHANED)
            case Connect():
                [end] = ends
                task = asyncio.get_running_loop().create_task(self._on_connect(message, end))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)
            case DrainNode():
                self.draining.set()
            case StopWriter():
                self.stopping.set()
