"""`penstock worker`"""

from __future__ import annotations

import argparse
import os
import signal
from argparse import Namespace
from types import FrameType

from penstock.edge.cli.kit.command import Command, argument, flag
from penstock.edge.cli.kit.exits import REFUSED, UsageError
from penstock.edge.cli.kit.flags import duration, number, size
from penstock.edge.cli.kit.output import Output
from penstock.worker.assignment import MIN_MEMORY_BYTES, Assignment

_DEFAULTS = Assignment(queues=())
_MAX_SLOTS = 10_000
_MAX_PROCESSES = 1_000
_SERVERS = ("http://", "https://")
_MAX_JOBS = 1_000_000_000


def _run(args: Namespace, out: Output) -> int:
    from penstock.supervision.logs import set_up_logs
    from penstock.wiring.broker import steady_clock
    from penstock.worker.processes.file_watch import FileWatch
    from penstock.worker.processes.frames import ProcessAssignment
    from penstock.worker.processes.process_exit import UNUSABLE
    from penstock.worker.processes.supervisor import Supervisor

    set_up_logs(args.log_level, args.log_format)
    assignment = ProcessAssignment(
        app=args.app,
        url=_url(args),
        key=args.key,
        work=_assignment(args),
        labels=_labels(args.label),
        has_duties=True,
        log_level=args.log_level,
        log_format=args.log_format,
    )

    def report_ready() -> None:
        queues = supervisor.queues
        if out.json:
            pids = supervisor.pids
            out.record({"ready": args.app, "pid": os.getpid(), "processes": pids, "queues": queues})
        else:
            slots = f"{args.processes} × {args.slots} slots"
            line = f"{args.app}, {slots}, queues {', '.join(queues)}"
            print(f"penstock worker is ready: {line}", flush=True)

    supervisor = Supervisor(
        assignment,
        steady_clock(),
        processes=args.processes,
        on_ready=report_ready,
        watch=FileWatch(args.watch or ["."]) if args.reload or args.watch else None,
    )

    def stop(number: int, _: FrameType | None) -> None:
        # A second Ctrl-C stops at once.
        is_again = number == signal.SIGINT and supervisor.is_draining
        supervisor.drain(0 if is_again else None)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    code = supervisor.run()
    return REFUSED if code == UNUSABLE else code


def _assignment(args: Namespace) -> Assignment:
    names = tuple(name.strip() for name in args.queues.split(",") if name.strip())
    if args.lease < 1_000:
        raise UsageError("--lease must be at least 1s")
    return Assignment(
        queues=names,
        slots=args.slots,
        prefetch=args.prefetch,
        lease_ms=args.lease,
        drain_ms=args.drain_for,
        beat_ms=max(args.beat, 1),
        is_burst=args.burst,
        max_jobs=args.max_jobs,
        max_memory_bytes=args.max_memory,
    )


def _url(args: Namespace) -> str | None:
    if args.server and args.store:
        raise UsageError("--server and --store exclude each other")
    if args.server and not args.server.startswith(_SERVERS):
        raise UsageError(f"--server takes http://… or https://…, not {args.server!r}; see --store")
    if args.store and args.store.startswith(_SERVERS):
        raise UsageError(
            f"--store takes sqlite:///path, postgresql://… or mysql://…; use --server {args.store}"
        )
    return args.server or args.store or None


def _labels(given: list[str]) -> dict[str, str]:
    labels = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--label {text!r} is not NAME=TEXT")
        labels[name] = value
    return labels


def _memory(text: str) -> int:
    given = size(text)
    if given < MIN_MEMORY_BYTES:
        least = f"{MIN_MEMORY_BYTES // 1024**2}MiB"
        raise argparse.ArgumentTypeError(f"{text} is less than {least}, the least a process needs")
    return given


COMMANDS = {
    "worker": Command(
        _run,
        argument("APP", "module:name of the application, e.g. shop.jobs:app"),
        flag(
            "--queues",
            "comma-separated queues to work on, the most urgent first; default: those of the "
            "application, without dead-letter queues",
            value="NAMES",
            default="",
        ),
        flag(
            "--slots",
            "concurrent jobs per process",
            type=number(1, _MAX_SLOTS),
            default=_DEFAULTS.slots,
        ),
        flag(
            "--processes",
            "number of processes",
            value="M",
            type=number(1, _MAX_PROCESSES),
            default=1,
        ),
        flag(
            "--prefetch",
            "jobs that each process claims beyond its free slots; default: many if jobs are "
            "short, none if they are long",
            value="K",
            type=number(0, _MAX_SLOTS),
        ),
        flag(
            "--lease",
            "how long a job stays leased without a beat",
            type=duration,
            default=_DEFAULTS.lease_ms,
        ),
        flag("--beat", "interval between beats", type=duration, default=_DEFAULTS.beat_ms),
        flag(
            "--drain-for",
            "how long running jobs may take after a stop",
            type=duration,
            default=_DEFAULTS.drain_ms,
        ),
        flag(
            "--burst",
            "exit with code 0 when no job runs and none can be claimed; jobs due later stay",
        ),
        flag(
            "--max-jobs",
            "replace a process or sandbox after this many finished jobs; default: never",
            type=number(1, _MAX_JOBS),
        ),
        flag(
            "--max-memory",
            "replace a process or sandbox whose resident memory after a job exceeds this, "
            "e.g. 512MiB; default: never",
            value="SIZE",
            type=_memory,
        ),
        flag(
            "--reload",
            "for development: restart the processes when Python files below the working "
            "directory change; running jobs have 5s to end",
        ),
        flag(
            "--watch",
            "as --reload, for the files below this folder; may be repeated",
            value="FOLDER",
            action="append",
            default=[],
        ),
        flag(
            "--label",
            "a label in the registry; may be repeated. fleet=NAME makes it a worker of that fleet",
            value="NAME=TEXT",
            action="append",
            default=[],
        ),
        flag(
            "--server",
            "work for the server at http://… instead of the application's own URL",
            value="URL",
        ),
        flag(
            "--store",
            "work on the store at sqlite:///path, postgresql://… or mysql://… instead of the "
            "application's own URL",
            value="URL",
        ),
        flag("--key", "API key for the server", value="SECRET", env="PENSTOCK_KEY"),
        flag(
            "--log-level",
            "lowest severity to log; debug logs every job",
            choices=("debug", "info", "warning", "error"),
            default="info",
        ),
        flag(
            "--log-format",
            "log format: text for people, json for programs",
            choices=("text", "json"),
            default="text",
        ),
        more="Starts processes that claim and run jobs, replaces processes that exit, and releases "
        "their jobs. SIGTERM or Ctrl-C stops it: it claims no more jobs, finishes running ones "
        "within --drain-for, and releases the rest without counting an attempt. A second Ctrl-C "
        "stops it at once.",
        examples=(
            "penstock worker shop.jobs:app",
            "penstock worker shop.jobs:app --queues mail,reports --slots 20 --processes 4",
            "penstock worker shop.jobs:app --server http://broker:7654 --drain-for 5m",
        ),
    )
}
