"""Inside a sandbox: one job after the other, on the main thread."""

from __future__ import annotations

import asyncio
import os
import threading
from queue import SimpleQueue

from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Handlers, WorkAct
from penstock.runtime.handling import Ready, prepare
from penstock.runtime.worker.frames import Ended, Job, Stop, Told, Wire
from penstock.runtime.worker.retirement import resident_bytes


class Controls:
    """What a handler may ask for goes to the worker."""

    def __init__(self, job: Job, wire: Wire) -> None:
        self._wire = wire
        self.deadline = job.deadline
        self.is_stopping = False

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        """A lost lease is not raised: the worker kills this process."""
        self._wire.send(Told(lease_ms, progress))


class Sandboxed:
    def __init__(self, handlers: Handlers, wire: Wire, clock: Clock, dice: Dice) -> None:
        self._handlers = handlers
        self._wire = wire
        self._clock = clock
        self._dice = dice
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._controls: Controls | None = None

    def run(self) -> None:
        """Until the worker is gone."""
        threading.Thread(target=self._hear, name="penstock-sandbox", daemon=True).start()
        while True:
            job = self._jobs.get()
            self._wire.send(Ended(self._do(job), resident_bytes()))

    def _hear(self) -> None:
        while True:
            match self._wire.receive():
                case Job() as job:
                    self._jobs.put(job)
                case Stop():
                    if self._controls is not None:
                        self._controls.is_stopping = True
                case _:
                    os._exit(0)

    def _do(self, job: Job) -> WorkAct:
        ready = prepare(self._handlers, job.work, self._clock)
        if not isinstance(ready, Ready):
            return ready
        controls = self._controls = Controls(job, self._wire)
        if ready.handler.is_async:
            return asyncio.run(ready.run_async(self._handlers, controls, self._dice))
        return ready.run(self._handlers, controls, self._dice)
