"""`penstock worker`"""

from __future__ import annotations

import argparse
import os
import signal
from argparse import Namespace
from types import FrameType

from penstock.edge.cli.kit.exits import REFUSED, UsageError
from penstock.edge.cli.kit.flags import duration, size
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command
from penstock.worker.assignment import LEAST_MEMORY_BYTES, Assignment

_DEFAULTS = Assignment(queues=())
_MOST_SLOTS = 10_000
_MOST_PROCESSES = 1_000
_SERVERS = ("http://", "https://")
_MOST_JOBS = 1_000_000_000


def configure(parser: Parser) -> None:
    parser.argument("APP", "module:name of the application, e.g. shop.jobs:app")
    parser.flag(
        "--queues",
        value="NAMES",
        text="queues to work on, with commas between, the most urgent first; default: those of "
        "the application's jobs",
        default="",
    )
    parser.flag(
        "--slots",
        value="N",
        text=f"how many jobs each process runs at a time; default {_DEFAULTS.slots}",
        type=_number(1, _MOST_SLOTS),
        default=_DEFAULTS.slots,
    )
    parser.flag(
        "--processes",
        value="M",
        text="how many processes; default 1",
        type=_number(1, _MOST_PROCESSES),
        default=1,
    )
    parser.flag(
        "--prefetch",
        value="K",
        text="how many jobs each process claims beyond its free slots; default: as many as it "
        "does in a moment, none if they take long",
        type=_number(0, _MOST_SLOTS),
    )
    parser.flag(
        "--lease",
        value="DURATION",
        text="for how long a job is held without a sign of life; default 30s",
        type=duration,
        default=_DEFAULTS.lease_ms,
    )
    parser.flag(
        "--beat",
        value="DURATION",
        text="how often to give a sign of life; default 15s",
        type=duration,
        default=_DEFAULTS.beat_ms,
    )
    parser.flag(
        "--drain-for",
        value="DURATION",
        text="how long running jobs may take at the end; default 30s",
        type=duration,
        default=_DEFAULTS.drain_ms,
    )
    parser.flag(
        "--burst",
        text="exit with code 0 when no job runs and none can be claimed; jobs that are due later "
        "stay",
    )
    parser.flag(
        "--max-jobs",
        value="N",
        text="number of finished jobs after which a process or sandbox is replaced; default: never",
        type=_number(1, _MOST_JOBS),
    )
    parser.flag(
        "--max-memory",
        value="SIZE",
        text="resident memory after a job, e.g. 512MiB, above which a process or sandbox is "
        "replaced; default: never",
        type=_memory,
    )
    parser.flag(
        "--label",
        value="NAME=TEXT",
        text="a label in the registry; may be repeated. fleet=NAME makes it one of that fleet's",
        action="append",
        default=[],
    )
    parser.flag(
        "--server",
        value="URL",
        text="work for the server at http://…, in place of what the application names",
    )
    parser.flag(
        "--store",
        value="URL",
        text="work on the store at sqlite:///path or postgresql://…, in place of what the "
        "application names",
    )
    parser.flag("--key", value="SECRET", text="API key for the server", env="PENSTOCK_KEY")
    parser.flag(
        "--log-level",
        value="LEVEL",
        text="least severity to log; debug has a line for every job; default info",
        choices=("debug", "info", "warning", "error"),
        default="info",
    )
    parser.flag(
        "--log-format",
        value="FORMAT",
        text="lines for people or for programs: text, json; default text",
        choices=("text", "json"),
        default="text",
    )


def run(args: Namespace, out: Output) -> int:
    from penstock.supervision.logs import set_up_logs
    from penstock.wiring.broker import steady_clock
    from penstock.worker.frames import ProcessAssignment
    from penstock.worker.process_exit import UNUSABLE
    from penstock.worker.supervisor import Supervisor

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

    def tell() -> None:
        queues = supervisor.queues
        if out.json:
            pids = supervisor.pids
            out.record({"ready": args.app, "pid": os.getpid(), "processes": pids, "queues": queues})
        else:
            slots = f"{args.processes} × {args.slots} slots"
            line = f"{args.app}, {slots}, queues {', '.join(queues)}"
            print(f"penstock worker is ready: {line}", flush=True)

    supervisor = Supervisor(assignment, steady_clock(), processes=args.processes, on_ready=tell)

    def end(number: int, _: FrameType | None) -> None:
        # The second Ctrl-C: at once.
        is_again = number == signal.SIGINT and supervisor.is_draining
        supervisor.drain(0 if is_again else None)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    code = supervisor.run()
    return REFUSED if code == UNUSABLE else code


def _assignment(args: Namespace) -> Assignment:
    names = tuple(name.strip() for name in args.queues.split(",") if name.strip())
    if args.lease < 1_000:
        raise UsageError("--lease is at least 1s")
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
            f"--store takes sqlite:///path or postgresql://…; use --server {args.store}"
        )
    return args.server or args.store or None


def _labels(given: list[str]) -> dict[str, str]:
    labels = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--label is NAME=TEXT, not {text!r}")
        labels[name] = value
    return labels


def _number(least: int, most: int) -> type:
    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{number} is not from {least} to {most}")
        return number

    return read  # type: ignore[return-value]


def _memory(text: str) -> int:
    given = size(text)
    if given < LEAST_MEMORY_BYTES:
        least = f"{LEAST_MEMORY_BYTES // 1024**2}MiB"
        raise argparse.ArgumentTypeError(f"{text} is less than {least}, which no process fits in")
    return given


COMMANDS = {
    "worker": Command(
        run,
        configure,
        more="Starts processes that claim jobs and run them, restarts those that die, and gives "
        "back what they held. SIGTERM or Ctrl-C ends it: nothing more is claimed, what runs is "
        "finished within --drain-for, the rest is given back and loses no attempt. A second "
        "Ctrl-C ends it at once.",
        examples=(
            "penstock worker shop.jobs:app",
            "penstock worker shop.jobs:app --queues mail,reports --slots 20 --processes 4",
            "penstock worker shop.jobs:app --server http://broker:7654 --drain-for 5m",
        ),
    )
}
