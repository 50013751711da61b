"""Inside a sandbox: one job after the other, on the main thread."""

from __future__ import annotations

from queue import SimpleQueue

from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Handlers, WorkAct
from penstock.supervision.threads import start_logged
from penstock.worker.frames import Ended, Job, Prepared, Stop, Told, Wire
from penstock.worker.handling import Ready, failed, prepare
from penstock.worker.lifespan import Lifespan, WorkerHooks
from penstock.worker.loop_thread import LoopThread
from penstock.worker.retirement import resident_bytes
from penstock.worker.sandbox import kill_own_group


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
    def __init__(
        self, handlers: Handlers, hooks: WorkerHooks, wire: Wire, clock: Clock, dice: Dice
    ) -> None:
        self._handlers = handlers
        self._wire = wire
        self._clock = clock
        self._dice = dice
        self._loop = LoopThread()
        self._lifespan = Lifespan(hooks, self._loop)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._controls: Controls | None = None  # of the job that runs

    def run(self) -> None:
        """Until the worker does not need it any more.  Raises StartFailed."""
        self._lifespan.start()
        self._wire.send(Prepared())
        # A sandbox that cannot be spoken to is replaced by its worker.
        start_logged("penstock-sandbox", self._hear, on_failure=lambda _: kill_own_group())
        while (job := self._jobs.get()) is not None:
            self._wire.send(Ended(self._do(job), resident_bytes()))
        self._lifespan.stop()
        self._loop.close()
        self._loop.join()

    def _hear(self) -> None:
        while True:
            match self._wire.receive():
                case Job() as job:
                    self._controls = Controls(job, self._wire)
                    self._jobs.put(job)
                case Stop():
                    if self._controls is not None:
                        self._controls.is_stopping = True
                case _:
                    if self._controls is not None:
                        kill_own_group()
                    self._jobs.put(None)
                    return

    def _do(self, job: Job) -> WorkAct:
        """Whatever happens to the job, the sandbox has an answer and goes on."""
        controls = self._controls or Controls(job, self._wire)
        try:
            ready = prepare(self._handlers, job.work, self._clock)
            if not isinstance(ready, Ready):
                return ready
            if not ready.handler.is_async:
                return ready.run(self._handlers, controls, self._dice, self._loop.wait)
            return self._loop.wait(ready.run_async(self._handlers, controls, self._dice))
        except BaseException as error:  # a task that cancels itself, a broken event loop
            return failed(job.work, error)
        finally:
            self._controls = None
