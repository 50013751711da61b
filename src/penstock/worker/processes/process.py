"""The entry point of worker processes and of sandboxes.

    python -m penstock.worker.processes.process work FD              claims jobs, runs most of them
    python -m penstock.worker.processes.process sandbox FD LIFELINE  runs one job at a time

FD is the number of a socket to the parent; the process exits when its parent has exited.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import socket
import sys
import threading
from contextlib import suppress

from penstock.domain.errors import PenstockError
from penstock.ports.store import OUTAGES
from penstock.supervision.logs import name_jobs, set_up_logs
from penstock.supervision.threads import start_logged
from penstock.wiring.broker import own_dice, steady_clock
from penstock.worker.application import Application, JobSource, WorkerRegistry
from penstock.worker.attempt_log import capture_logs
from penstock.worker.beats import describe_worker
from penstock.worker.processes.child import SANDBOX, command
from penstock.worker.processes.frames import (
    Drain,
    Dry,
    Finish,
    ProcessAssignment,
    WaitingForStore,
    Wire,
    Working,
)
from penstock.worker.processes.job_table import JobTable
from penstock.worker.processes.process_exit import LOOP_FAILED, RETIRED, UNUSABLE
from penstock.worker.processes.startup import (
    FINAL,
    load_app,
    report_leftovers,
    unknown_queues,
    until_answered,
)
from penstock.worker.slots.lifespan import StartFailed
from penstock.worker.slots.sandbox import SandboxedJobs, bind_to_lifeline
from penstock.worker.slots.sandboxes import Sandboxes
from penstock.worker.worker import JobWorker

_log = logging.getLogger("penstock.worker")

_SWITCH_SECONDS = 0.0001  # the pump must not wait 5 ms for the interpreter while a job computes
_FAILED = 1
_AT_EXIT_S = 10.0  # limit for all `atexit` handlers; that of multiprocessing waits for its children


def main() -> None:
    kind, fd, *lifeline = sys.argv[1:]
    os.set_inheritable(int(fd), False)  # child processes of a job must not keep it open
    for each in lifeline:
        bind_to_lifeline(int(each))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C comes here too; the parent decides
    if kind == SANDBOX:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the worker decides when it ends
    wire = Wire(socket.socket(fileno=int(fd)))
    assignment = wire.receive()
    if not isinstance(assignment, ProcessAssignment):
        os._exit(_FAILED)  # the parent has exited already
    set_up_logs(assignment.log_level, assignment.log_format)
    try:
        app = load_app(assignment.app, url=assignment.url, key=assignment.key)
        name_jobs(app.running_job)
        capture_logs(app)
        code = _sandbox(app, wire) if kind == SANDBOX else _work(app, assignment, wire)
    except FINAL as error:
        print(f"penstock: {error}", file=sys.stderr)  # noqa: T201
        code = UNUSABLE
    except BrokenPipeError:  # the parent has exited in the meantime
        code = _FAILED
    except (PenstockError, OSError, StartFailed) as error:
        print(f"penstock: the worker cannot start: {error}", file=sys.stderr)  # noqa: T201
        code = _FAILED
    _exit(code)


def _exit(code: int) -> None:
    """Run `atexit` handlers, but do not wait for threads, which may still run jobs."""
    too_long = threading.Timer(_AT_EXIT_S, os._exit, (code,))
    too_long.daemon = True
    too_long.start()
    with suppress(BaseException):
        atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _work(app: Application, assignment: ProcessAssignment, wire: Wire) -> int:
    sys.setswitchinterval(_SWITCH_SECONDS)
    logging.getLogger(OUTAGES).setLevel(logging.ERROR)  # the supervisor reports outages
    work, handlers = assignment.work.with_queues(app.worker_queues), app.job_handlers
    os.set_inheritable(assignment.table_fd, False)
    table = JobTable.inherited(assignment.table_fd)

    def connect() -> tuple[JobSource, WorkerRegistry, list[str]]:
        source = app.job_source()
        about = describe_worker(work, handlers.kinds, assignment.app, assignment.labels)
        registry = app.registry(about)
        report_leftovers(source, assignment.leftovers)
        if table.worker_id:
            registry.leave(table.worker_id)  # the predecessor has exited
        return source, registry, unknown_queues(app, work.queues)

    connected = until_answered(connect, wire)
    if connected is None:
        return 0
    source, registry, warnings = connected
    if assignment.is_successor:
        wire.send(Working())
        app.close()
        return 0
    if assignment.has_duties:
        app.start_duties()
    clock = app.clock
    table.set_ahead(clock.now() - steady_clock().now())
    sandboxes = Sandboxes(command(SANDBOX), assignment, clock)
    if any(_needs_sandbox(app, kind) for kind in handlers.kinds):
        sandboxes.warm_up()
    worker = JobWorker(
        work,
        source,
        handlers,
        clock,
        own_dice(),
        registry=registry,
        sandboxes=sandboxes,
        table=table,
        on_dry=lambda is_dry: _send(wire, Dry(is_dry)),
        on_outage=lambda error: _send(wire, WaitingForStore(error)),
        hooks=handlers.worker_hooks,
        crash=lambda: os._exit(LOOP_FAILED),
    )
    worker.start()
    signal.signal(signal.SIGTERM, lambda *_: worker.drain())
    start_logged(
        "penstock-orders", lambda: _follow_orders(wire, worker), on_failure=lambda _: worker.drain()
    )
    wire.send(Working(work.queues, tuple(warnings)))
    worker.run()
    app.close()
    return RETIRED if worker.is_retired else 0


def _send(wire: Wire, frame: Dry | WaitingForStore) -> None:
    with suppress(OSError):  # the supervisor has exited: `_follow_orders` ends this process
        wire.send(frame)


def _needs_sandbox(app: Application, kind: str) -> bool:
    handler = app.job_handlers.find(kind)
    return handler is not None and handler.timeout_ms is not None and not handler.is_async


def _follow_orders(wire: Wire, worker: JobWorker) -> None:
    while True:
        frame = wire.receive()
        if isinstance(frame, Finish):
            worker.finish()
            continue
        if frame is None:
            _log.warning("the supervisor has exited: shutting down")
        worker.drain(frame.within_ms if isinstance(frame, Drain) else None)
        if frame is None:
            return


def _sandbox(app: Application, wire: Wire) -> int:
    SandboxedJobs(app.job_handlers, wire, app.clock, own_dice()).run()
    app.close()
    return 0


if __name__ == "__main__":
    main()
