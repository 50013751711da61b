"""Judges a recorded history: I1-I7 hold, or here is what broke them.

| promise | broken by |
|---|---|
| I1 | lost |
| I2 | two leases at once, stale lease accepted, receipt reused, lease number went back |
| I3 | unexpected, corrupt, stored twice, resurrected, completed twice |
| I4 | out of order |
| I5 | totals do not balance, not drained |
| I7 | counter went back, id went back |

I6 (it comes back by itself) is timed by the tests that take it down. A run that could not read, or
that acknowledged too little to prove anything, is INVALID and fails as loudly as a broken promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.faults import check_content, check_counters, check_leases, check_order
from tests.faults.history import History, Kind, Op, Outcome

SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one run must reach, and what its faults excuse."""

    min_acked: int
    leases_may_end_early: bool = False  # after a clock was set forward: counted, but allowed
    ids_are_ordered: bool = True  # one node made them all
    slack_s: float = 0.01  # rounding to milliseconds, and reading two clocks
    min_completed: int = 1


@dataclass(slots=True)
class Verdict:
    invalid: list[str] = field(default_factory=list)
    broken: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return not self.invalid and not self.broken

    def __str__(self) -> str:
        lines = [f"INVALID: {reason}" for reason in self.invalid]
        for name, findings in sorted(self.broken.items()):
            lines.append(f"BROKEN: {name}: {len(findings)}")
            lines += [f"    {finding}" for finding in findings[:SHOWN]]
        lines.append("counted: " + ", ".join(f"{k} {v}" for k, v in self.counts.items()))
        return "\n".join(lines)


def check(history: History, totals: list[Op], rules: Rules) -> Verdict:
    verdict = Verdict(counts=_counts(history))
    verdict.invalid = list(_reasons_not_to_believe(history, totals, rules))
    early: list[str] = []
    findings: list[tuple[str, str]] = [
        *check_content.findings(history),
        *check_order.findings(history),
        *check_counters.findings(history, totals, ids_are_ordered=rules.ids_are_ordered),
    ]
    for name, text in check_leases.findings(history, rules.slack_s):
        if name == check_leases.TWO_AT_ONCE and rules.leases_may_end_early:
            early.append(text)
        else:
            findings.append((name, text))
    for name, text in findings:
        verdict.broken.setdefault(name, []).append(text)
    verdict.counts["leases ended early"] = len(early)
    return verdict


def _reasons_not_to_believe(history: History, totals: list[Op], rules: Rules) -> Iterable[str]:
    yield from history.problems
    if history.acked(Kind.SEND) < rules.min_acked:
        yield f"only {history.acked(Kind.SEND)} of {rules.min_acked} sends acknowledged"
    if history.acked(Kind.COMPLETE) < rules.min_completed:
        yield f"only {history.acked(Kind.COMPLETE)} of {rules.min_completed} completions"
    if not totals:
        yield "the totals were not read"
    for op in totals:
        if op.outcome is not Outcome.OK:
            yield f"the totals of {op.queue} could not be read"


def _counts(history: History) -> dict[str, int]:
    counts: dict[str, int] = {}
    for op in history.ops:
        name = f"{op.kind} {op.outcome}"
        counts[name] = counts.get(name, 0) + 1
    counts["faults"] = len(history.faults)
    return dict(sorted(counts.items()))
