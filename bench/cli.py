"""`python -m bench`: the options, the parts in order, one report."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import inprocess, push, report, side_by_side, sqs, table
from bench.embedded import open_penstock
from bench.flows import measure as flows
from bench.install import MissingError
from bench.jobs import measure as jobs
from bench.loads import BY_NAME
from bench.peers import PEERS
from bench.peers.base import Peer
from bench.peers.penstock import Penstock, PenstockSqs
from bench.runner import Plan, Results, Runner
from bench.scale import Scale, Size
from bench.workspace import Workspace

PARTS = ("peers", "sqs", "scale", "inprocess", "processes", "jobs", "flows", "push")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    # Both end in the `finally` blocks that stop every server; a shell may have had Ctrl-C ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    workspace = Workspace(options.folder)
    try:
        return measure(options, workspace)
    except KeyboardInterrupt:
        say("interrupted: all servers are stopped, nothing is reported")
        return 130
    finally:
        workspace.close()


def measure(options: argparse.Namespace, workspace: Workspace) -> int:
    plan = Plan(options.load, options.rounds, options.seconds, options.connections)
    named: list[Peer] = [peer() for peer in options.only]
    native = [peer for peer in named if not peer.speaks_sqs()] if "peers" in options.part else []
    speakers = sqs.rows(named) if "sqs" in options.part else []
    # Both tables from the same rounds, and no peer is measured twice.
    peers = [peer for peer in named if peer in native or peer in speakers]
    runner = Runner(workspace, plan, say)
    runner.run(runner.find(peers, may_install=not options.no_install))
    beside = measure_sqs(options, workspace) if sqs.is_wanted(speakers, plan.loads) else None
    scale = measure_scale(options, workspace) if "scale" in options.part else None
    inside = measure_inside(options, workspace) if "inprocess" in options.part else None
    beside_others = measure_processes(options, workspace) if "processes" in options.part else None
    pushed = measure_push(options, workspace) if "push" in options.part else None

    frameworks = measure_jobs(options, workspace) if "jobs" in options.part else None

    graphs = measure_flows(options, workspace) if "flows" in options.part else None

    texts = [report.heading(plan, workspace.file_system, runner.results)]
    texts += tables(runner.results, plan, native=native, speakers=speakers)
    if isinstance(beside, str):
        texts.append(f"sqs beside native: {beside}")
    elif beside:
        texts.append(report.sqs_text(beside))
    if scale:
        texts.append(report.scale_text(scale))
    if isinstance(inside, str):
        texts.append(f"in process: missing: {inside}")
    elif inside:
        texts.append(report.inprocess_text(inside))
    if beside_others:
        texts.append(report.processes_text(beside_others))
    if frameworks:
        texts.append(jobs.text(frameworks))
    if graphs:
        texts.append(flows.text(graphs))
    if pushed:
        texts.append(report.push_text(pushed))
    print("\n\n".join(texts))
    if options.json:
        found = inside if isinstance(inside, inprocess.InProcess) else None
        document = report.as_json(
            plan,
            runner.results,
            peers=peers,
            sqs=beside if isinstance(beside, sqs.BesideNative) else None,
            scale=scale,
            inprocess=found,
            processes=beside_others,
            push=pushed,
        )
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


def tables(
    results: Results, plan: Plan, *, native: Sequence[Peer], speakers: Sequence[Peer]
) -> list[str]:
    texts = []
    for title, rows, ours in (
        ("messages/s", native, Penstock.name),
        ("messages/s by SQS", speakers, PenstockSqs.name),
    ):
        if rows:
            texts.append(table.render(results, rows, plan.loads, title=title, ours=ours))
    return [*texts, table.footnotes(results, plan.loads)] if texts else []


def measure_sqs(options: argparse.Namespace, workspace: Workspace) -> sqs.BesideNative | str:
    return sqs.measure(
        workspace,
        rounds=options.rounds,
        seconds=options.seconds,
        connections=options.connections,
    )


def measure_scale(options: argparse.Namespace, workspace: Workspace) -> Scale:
    messages, queues = (20_000, 200) if options.quick else (1_000_000, 10_000)
    size = Size(options.messages or messages, queues, options.rounds, options.seconds)
    scale = Scale(workspace, size, say)
    scale.run()
    return scale


def measure_inside(options: argparse.Namespace, workspace: Workspace) -> inprocess.InProcess | str:
    """The figures, or why they are missing."""
    slices = 1 if options.quick else 5
    try:
        return inprocess.measure(
            open_penstock, workspace.fresh("inprocess"), slices=slices, seconds=options.seconds
        )
    except MissingError as error:
        return str(error)


def measure_processes(options: argparse.Namespace, workspace: Workspace) -> side_by_side.SideBySide:
    return side_by_side.measure(workspace, rounds=options.rounds, seconds=options.seconds)


def measure_jobs(options: argparse.Namespace, workspace: Workspace) -> dict[str, jobs.Measured]:
    return jobs.measure(
        workspace,
        say,
        rounds=options.rounds,
        share=0.1 if options.quick else 1.0,
        may_install=not options.no_install,
        only=lambda name: any(part in name for part in options.jobs.split(",")),
    )


def measure_flows(
    options: argparse.Namespace, workspace: Workspace
) -> dict[str, flows.MeasuredFlows]:
    return flows.measure(
        workspace,
        say,
        rounds=options.rounds,
        share=0.1 if options.quick else 1.0,
        may_install=not options.no_install,
        only=lambda name: any(part in name for part in options.jobs.split(",")),
    )


def measure_push(options: argparse.Namespace, workspace: Workspace) -> push.Push:
    queues, each = (100, 5) if options.quick else (1_000, 20)
    return push.measure(workspace, queues=queues, each=each, seconds=options.seconds)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round and small backlogs: does it run?")
    add("--seconds", type=float, help="length of one measurement (3; quick: 0.5)")
    add("--rounds", type=int, help="rounds of which the median is taken (3; quick: 1)")
    add("--connections", type=int, default=64)
    add("--only", type=peers_named, default=PEERS, help="peers by parts of their names: a,b")
    add("--load", type=loads_named, default=tuple(BY_NAME.values()), help=",".join(BY_NAME))
    add("--part", type=parts_named, default=PARTS, help=",".join(PARTS))
    add("--messages", type=int, help="backlog of the scale loads (1,000,000; quick: 20,000)")
    add("--jobs", default="", help="job frameworks by parts of their names: a,b")
    add("--no-install", action="store_true", help="use only what is installed")
    add("--json", type=Path, help="also write the figures to this file")
    add("--folder", type=Path, default=Path(".bench"), help="where servers keep their data")
    options = parser.parse_args(arguments)
    options.seconds = options.seconds or (0.5 if options.quick else 3.0)
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def peers_named(text: str) -> list[type[Peer]]:
    parts = text.split(",")
    for part in parts:
        if not any(part in peer.name for peer in PEERS):
            raise argparse.ArgumentTypeError(f"no peer is named {part!r}")
    return [peer for peer in PEERS if any(part in peer.name for part in parts)]


def loads_named(text: str) -> list[object]:
    try:
        return [BY_NAME[name] for name in text.split(",")]
    except KeyError as error:
        raise argparse.ArgumentTypeError(f"no load is named {error}") from None


def parts_named(text: str) -> list[str]:
    if unknown := set(text.split(",")) - set(PARTS):
        raise argparse.ArgumentTypeError(f"no part is named {', '.join(sorted(unknown))}")
    return text.split(",")


def say(text: str) -> None:
    """Progress goes to standard error, so that the report can be kept by itself."""
    print(text, file=sys.stderr, flush=True)
