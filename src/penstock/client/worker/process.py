"""The two kinds of processes that a worker is made of, as command lines and as programs.

    python -m penstock.client.worker.process work FD              claims, runs most jobs
    python -m penstock.client.worker.process sandbox FD LIFELINE  runs one job at a time

Each gets the number of a socket to its parent, and ends when its parent is gone.
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

from penstock.client.app import Penstock
from penstock.client.worker.connecting import (
    FINAL,
    settle_left,
    unknown_queues,
    until_answered,
)
from penstock.client.worker.loading import load_app
from penstock.client.worker.logs import set_up
from penstock.client.worker.sandboxed import Sandboxed
from penstock.client.worker.settling import settled
from penstock.domain.errors import PenstockError
from penstock.ports.store import OUTAGES
from penstock.ports.work import WorkSource
from penstock.supervision.threads import start_logged
from penstock.wiring.broker import own_dice, steady_clock
from penstock.worker.frames import Drain, Dry, Errand, Finish, Waiting, Wire, Working
from penstock.worker.job_table import Table
from penstock.worker.lifespan import StartFailed
from penstock.worker.process_exit import LOOP_FAILED
from penstock.worker.registration import WorkerRegistry, describe_worker
from penstock.worker.sandbox import hang_by
from penstock.worker.sandboxes import Sandboxes
from penstock.worker.supervisor import RETIRED, UNUSABLE
from penstock.worker.worker import Worker

_log = logging.getLogger("penstock.worker")

WORK = "work"
SANDBOX = "sandbox"
_SWITCH_SECONDS = 0.0005  # the pump must not wait 5 ms for a job that computes
_FAILED = 1
_AT_EXIT_S = 10.0  # for all `atexit` handlers; that of multiprocessing waits for its children


def command(kind: str) -> list[str]:
    return [sys.executable, "-m", __name__ if __name__ != "__main__" else _NAME, kind]


_NAME = "penstock.client.worker.process"


def main() -> None:
    kind, fd, *lifeline = sys.argv[1:]
    os.set_inheritable(int(fd), False)  # what a job starts must not keep it open
    for each in lifeline:
        hang_by(int(each))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us too; the parent decides
    if kind == SANDBOX:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the worker decides when it ends
    wire = Wire(socket.socket(fileno=int(fd)))
    errand = wire.receive()
    if not isinstance(errand, Errand):
        os._exit(_FAILED)  # the parent is gone already
    set_up(errand.log_level, errand.log_format)
    try:
        app = load_app(errand.app, url=errand.url, key=errand.key)
        code = _sandbox(app, wire) if kind == SANDBOX else _work(app, errand, wire)
    except FINAL as error:
        print(f"penstock: {error}", file=sys.stderr)  # noqa: T201
        code = UNUSABLE
    except BrokenPipeError:  # the parent has died meanwhile
        code = _FAILED
    except (PenstockError, OSError, StartFailed) as error:
        print(f"penstock: the worker cannot start: {error}", file=sys.stderr)  # noqa: T201
        code = _FAILED
    _exit(code)


def _exit(code: int) -> None:
    """Run `atexit` handlers, but do not wait for threads: those of jobs may still run."""
    too_long = threading.Timer(_AT_EXIT_S, os._exit, (code,))
    too_long.daemon = True
    too_long.start()
    with suppress(BaseException):
        atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _work(app: Penstock, errand: Errand, wire: Wire) -> int:
    sys.setswitchinterval(_SWITCH_SECONDS)
    logging.getLogger(OUTAGES).setLevel(logging.ERROR)  # the supervisor reports them, once for all
    order = settled(app, errand.order)
    os.set_inheritable(errand.table_fd, False)
    table = Table.inherited(errand.table_fd)

    def connect() -> tuple[WorkSource, WorkerRegistry, list[str]]:
        source = app.work_source()
        registry = app.registry(
            describe_worker(order, app.handlers.kinds, errand.app, errand.labels)
        )
        settle_left(source, errand.left)
        if table.worker_id:
            registry.leave(table.worker_id)  # the process before this one has ended
        return source, registry, unknown_queues(app, order.queues)

    connected = until_answered(connect, wire)
    if connected is None:
        return 0
    source, registry, warnings = connected
    if errand.is_heir:
        wire.send(Working())
        app.close()
        return 0
    if errand.has_duties:
        app.start_duties()
    clock = app.clock
    table.set_ahead(clock.now() - steady_clock().now())
    sandboxes = Sandboxes(command(SANDBOX), errand, clock)
    if any(_needs_sandbox(app, kind) for kind in app.handlers.kinds):
        sandboxes.warm_up()
    worker = Worker(
        order,
        source,
        app.handlers,
        clock,
        own_dice(),
        registry=registry,
        sandboxes=sandboxes,
        table=table,
        on_dry=lambda is_dry: _tell(wire, Dry(is_dry)),
        on_outage=lambda error: _tell(wire, Waiting(error)),
        hooks=app.handlers.worker_hooks,
        crash=lambda: os._exit(LOOP_FAILED),
    )
    worker.start()
    signal.signal(signal.SIGTERM, lambda *_: worker.drain())
    start_logged("penstock-obey", lambda: _obey(wire, worker), on_failure=lambda _: worker.drain())
    wire.send(Working(order.queues, tuple(warnings)))
    worker.run()
    app.close()
    return RETIRED if worker.is_retired else 0


def _tell(wire: Wire, frame: Dry | Waiting) -> None:
    with suppress(OSError):  # the supervisor is gone: `_obey` ends this process
        wire.send(frame)


def _needs_sandbox(app: Penstock, kind: str) -> bool:
    handler = app.handlers.find(kind)
    return handler is not None and handler.timeout_ms is not None and not handler.is_async


def _obey(wire: Wire, worker: Worker) -> None:
    while True:
        frame = wire.receive()
        if isinstance(frame, Finish):
            worker.finish()
            continue
        if frame is None:
            _log.warning("the supervisor is gone: ending")
        worker.drain(frame.within_ms if isinstance(frame, Drain) else None)
        if frame is None:
            return


def _sandbox(app: Penstock, wire: Wire) -> int:
    handlers = app.handlers
    Sandboxed(handlers, handlers.worker_hooks, wire, app.clock, own_dice()).run()
    app.close()
    return 0


if __name__ == "__main__":
    main()
