"""Puts the parts of a run into one text, and into one JSON document."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Sequence
from typing import Any

from bench.inprocess import PACE, SUSTAINED, InProcess
from bench.loads import Load
from bench.peers.base import Peer
from bench.push import PACE as PUSH_PACE
from bench.push import RELEASE_MS, Push
from bench.runner import Plan, Results
from bench.scale import Scale
from bench.side_by_side import AIM as SIDE_BY_SIDE_AIM
from bench.side_by_side import COUNTS, LOADS, SideBySide
from bench.sqs import AIM, BesideNative
from bench.table import aligned, cell


def heading(plan: Plan, file_system: str, results: Results) -> str:
    disk = " / ".join(f"{one.p50:.2f} and {one.p99:.2f}" for one in results.disk)
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, {file_system}; "
        f"1 KB bodies, {plan.connections} connections, median of {plan.rounds} × "
        f"{plan.seconds:g} s, ± half the spread, x = ratio to the first row (above 1: faster), "
        f"* = the load generator was full\nfdatasync p50 and p99 in ms, by round: {disk or '-'}"
    )


def sqs_text(found: BesideNative) -> str:
    quarter = len(found.ratios) // 4
    row = [
        f"SQS SendMessage / native single send, {len(found.pairs)} pairs",
        f"{found.sqs:,.0f}/s / {found.native:,.0f}/s, {found.ratio:.2f}x "
        f"(half of them {found.ratios[quarter]:.2f} to {found.ratios[-1 - quarter]:.2f})",
        f"≥ {AIM:.2f}x",
        "yes" if found.is_met else "NO",
    ]
    return aligned([["sqs", "measured", "aim", "met"], row])


def scale_text(scale: Scale) -> str:
    rows = [["scale", "small", "big", "aim", "met"]]
    for one in scale.findings:
        rows.append([one.question, one.small, one.big, one.aim, "yes" if one.is_met else "NO"])
    return "\n".join([aligned(rows), *(f"invalid: {text}" for text in scale.failures)])


def inprocess_text(found: InProcess) -> str:
    send, disk = found.handled_after, found.disk
    rows = [
        ["in process", "measured", "aim", "met"],
        [
            f"send to handler at {PACE:.0f}/s, p99 (p50)",
            f"{send.p99:.2f} ms ({send.p50:.2f})",
            f"≤ 2 × fdatasync: {2 * disk.p99:.2f} ms ({disk.p50:.2f})",
            "yes" if found.is_quick else "NO",
        ],
        [
            "sustained",
            f"{found.sustained:,.0f}/s",
            f"≥ {SUSTAINED:,.0f}/s",
            "yes" if found.is_sustained else "NO",
        ],
    ]
    return aligned(rows)


def processes_text(found: SideBySide) -> str:
    rows = [["processes on one file", "together", "slowest one", "longest", "aim", "met"]]
    for load in LOADS:
        for count in COUNTS:
            rate, spread = found.rate(load, count), found.spread(load, count)
            met = "yes" if found.is_met(load, count) else "NO"
            aim = [f"≥ {SIDE_BY_SIDE_AIM:.2f}x", met] if count > 1 else ["-", "-"]
            row = [
                f"{load}, {count} with {found.clients} clients each",
                f"{rate:,.0f}/s ±{spread:.0%} {found.ratio(load, count):.2f}x",
                f"{found.least(load, count):.0%} of its share",
                f"{found.longest_ms(load, count):,.0f} ms",
            ]
            rows.append(row + aim)
    errors = [f"error, {count} times: {text}" for text, count in found.errors.items()]
    return "\n".join([aligned(rows), *errors])


def push_text(found: Push) -> str:
    sent, disk = found.arrived_after, found.disk
    rows = [
        [f"push, {found.queues:,} queues", "measured", "beside"],
        ["out of a backlog", f"{found.rate:,.0f} deliveries/s", "-"],
        [
            f"send to backend at {PUSH_PACE:.0f}/s, p99 (p50)",
            f"{sent.p99:.2f} ms ({sent.p50:.2f})",
            f"fdatasync: {disk.p99:.2f} ms ({disk.p50:.2f})",
        ],
        [
            f"recovery of {found.held:,} held deliveries",
            f"{found.recovery:.1f} s, at most {found.peak:,.0f}/s",
            f"{RELEASE_MS} ms per tick, twice as many queues at each",
        ],
    ]
    return aligned(rows)


def as_json(
    plan: Plan,
    results: Results,
    *,
    peers: Sequence[Peer],
    sqs: BesideNative | None,
    scale: Scale | None,
    inprocess: InProcess | None,
    processes: SideBySide | None = None,
    push: Push | None = None,
) -> dict[str, Any]:
    return {
        "seconds": plan.seconds,
        "rounds": plan.rounds,
        "connections": plan.connections,
        "disk": [dataclasses.asdict(one) for one in results.disk],
        "peers": {peer.name: _peer_json(peer, results, plan.loads) for peer in peers},
        "missing": results.missing,
        "warnings": results.warnings,
        "sqs": {**dataclasses.asdict(sqs), "ratio": sqs.ratio} if sqs else None,
        "scale": [dataclasses.asdict(one) for one in scale.findings] if scale else None,
        "inprocess": dataclasses.asdict(inprocess) if inprocess else None,
        "processes": processes.as_json() if processes else None,
        "push": push.as_json() if push else None,
    }


def _peer_json(peer: Peer, results: Results, loads: Sequence[Load]) -> dict[str, Any]:
    measured = {}
    for load in loads:
        outcomes = results.outcomes.get((peer.name, load.name), [])
        measured[load.name] = {
            "rate": cell(outcomes).rate,
            "rounds": [dataclasses.asdict(one) for one in outcomes],
        }
    return measured
