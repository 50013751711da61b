"""A server in a thread of this process, so that a test can set its clock and inspect it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import uvloop

from penstock.edge.serving.serve import run
from penstock.ports.clock import Clock
from penstock.settings import Settings
from penstock.wiring.broker import open_broker

START_S = 60.0
STOP_S = 60.0


class LiveServer:
    """`url`, `port`, `data`, `backend`, `clock` and `broker` are for tests to use."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, has_duties: bool = True
    ) -> None:
        """Without duties nothing happens between two steps of a test; see tests/edge/duties.py."""
        self.broker = open_broker(settings, clock=clock)
        if not has_duties:
            self.broker.start_duties = lambda: None  # type: ignore[method-assign]
        self.clock = self.broker.clock
        self.backend = self.broker.store.backend
        self.data = Path(settings.data)
        self.url = ""
        self._is_ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="live-server")

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def start(self) -> Self:
        self._thread.start()
        assert self._is_ready.wait(START_S), "the server did not start"
        if self._error is not None:
            raise self._error
        return self

    def ask_to_stop(self) -> None:
        with suppress(RuntimeError):  # it may just have stopped and closed its loop
            self._loop.call_soon_threadsafe(self._stop.set)

    def stop(self) -> None:
        """Stop; calling it twice is harmless."""
        if self._thread.is_alive():
            self.ask_to_stop()
            self._thread.join(STOP_S)
            assert not self._thread.is_alive(), "the server did not stop"
            self.broker.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
            self._is_ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await run(self.broker, self._stop, on_ready=self._ready)

    def _ready(self, url: str) -> None:
        self.url = url
        self._is_ready.set()
