"""A table: one row per peer, one column per load, each with its noise and its ratio to ours."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench.driver import Outcome
from bench.loads import Load
from bench.peers.base import Peer
from bench.runner import Results

# Above this the generator, not the peer, may have set the figure.
GENERATOR_IS_FULL = 0.9


@dataclass(frozen=True)
class Cell:
    """The median of the rounds and their spread; no figure when any round had an error."""

    rate: float | None
    spread: float | None = None
    is_generator_full: bool = False

    def text(self, ours: float | None) -> str:
        if self.rate is None:
            return "invalid"
        mark = "*" if self.is_generator_full else ""
        ratio = f" {self.rate / ours:.2f}x" if ours else ""
        return f"{self.rate:,.0f}{mark}{_spread_text(self.spread)}{ratio}"


def cell(outcomes: Sequence[Outcome], *, is_embedded: bool = False) -> Cell:
    if not outcomes or any(outcome.error or not outcome.messages for outcome in outcomes):
        return Cell(None)
    rates = [outcome.rate for outcome in outcomes]
    return Cell(
        statistics.median(rates),
        spread=spread(rates),
        is_generator_full=not is_embedded
        and max(outcome.cpu_share for outcome in outcomes) > GENERATOR_IS_FULL,
    )


def spread(rates: Sequence[float]) -> float | None:
    """Half of the distance between best and worst, as a share; one round has no noise to show."""
    if len(rates) < 2:
        return None
    return (max(rates) - min(rates)) / 2 / statistics.median(rates)


def rate_text(rates: Sequence[float]) -> str:
    return f"{statistics.median(rates):,.0f}/s{_spread_text(spread(rates))}"


def render(
    results: Results, peers: Sequence[Peer], loads: Sequence[Load], *, title: str, ours: str
) -> str:
    """Three tables: rates with their ratio to ours, latencies, and CPU per message."""
    base = {load.name: cell(results.outcomes.get((ours, load.name), [])).rate for load in loads}
    unpaced = [load for load in loads if load.pace is None]
    tables = [
        _table(results, peers, unpaced, title, partial(_text, base=base)),
        _table(results, peers, loads, f"{title}: p50 / p99 ms", _latency_text),
        _table(results, peers, loads, f"{title}: server CPU µs per message", _cpu_text),
    ]
    notes = "\n".join(f"{peer.name}: {peer.note}" for peer in peers)
    return "\n\n".join([*(text for text in tables if text), notes])


def _table(
    results: Results,
    peers: Sequence[Peer],
    loads: Sequence[Load],
    title: str,
    text_of: Callable[[Sequence[Outcome], Peer, Load], str],
) -> str:
    if not loads:
        return ""
    rows = [[title, *(load.name for load in loads)]]
    for peer in peers:
        found = [results.outcomes.get((peer.name, load.name), []) for load in loads]
        if any(found):
            texts = [text_of(one, peer, load) for one, load in zip(found, loads, strict=True)]
        else:
            texts = ["missing"] * len(loads)
        rows.append([peer.name, *texts])
    return aligned(rows)


def footnotes(results: Results, loads: Sequence[Load]) -> str:
    """What to know about all tables of a run."""
    lines = [f"{load.name}: {load.says}" for load in loads]
    lines += [f"missing: {name}: {reason}" for name, reason in results.missing.items()]
    lines += _invalid(results)
    lines += [f"warning: {text}" for text in results.warnings]
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up in a terminal."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _spread_text(share: float | None) -> str:
    return "" if share is None else f" ±{share:.0%}"


def _text(
    outcomes: Sequence[Outcome], peer: Peer, load: Load, *, base: Mapping[str, float | None]
) -> str:
    return cell(outcomes, is_embedded=peer.is_embedded).text(base[load.name])


def _latency_text(outcomes: Sequence[Outcome], peer: Peer, load: Load) -> str:
    if cell(outcomes).rate is None:
        return "invalid"
    p50 = statistics.median(outcome.p50_ms for outcome in outcomes)
    p99 = statistics.median(outcome.p99_ms for outcome in outcomes)
    return f"{p50:.2f} / {p99:.2f}"


def _cpu_text(outcomes: Sequence[Outcome], peer: Peer, load: Load) -> str:
    if peer.is_embedded:
        return "-"  # it runs in the generator
    if cell(outcomes).rate is None:
        return "invalid"
    return f"{statistics.median(outcome.cpu_us for outcome in outcomes):,.0f}"


def _invalid(results: Results) -> list[str]:
    return [
        f"invalid: {peer} {load}: {next(one.error for one in outcomes if one.error)}"
        for (peer, load), outcomes in results.outcomes.items()
        if any(one.error for one in outcomes)
    ]
