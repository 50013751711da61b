"""I2: no message is in two leases at once, and only the newest lease can act.

A claim is granted somewhere between its start and its end. The lease certainly holds from `end`
until `start + lease`: counting from the start of the request can only shorten it, so what is
reported is certain whatever the latency was. An act that might have ended the lease (even one with
an unknown outcome) excuses everything after its start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.faults.history import Fault, History, Kind, Op, Outcome

Finding = tuple[str, str]
TWO_AT_ONCE = "two leases at once"
_POSSIBLE = (Outcome.OK, Outcome.UNKNOWN)


def findings(history: History, slack_s: float) -> Iterator[Finding]:
    acts: dict[str, list[Op]] = defaultdict(list)
    for op in history.ops:
        if op.kind in (Kind.COMPLETE, Kind.EXTEND, Kind.GIVE_BACK) and op.outcome in _POSSIBLE:
            acts[op.receipt].append(op)
    claims: dict[str, list[Op]] = defaultdict(list)
    receipts: dict[str, Op] = {}
    for op in history.of(Kind.CLAIM, Outcome.OK):
        claims[op.message_id].append(op)
        if op.receipt in receipts:
            yield "receipt reused", f"{op.uid}: lease {op.lease_no} has the receipt of an older one"
        receipts[op.receipt] = op
    forgetting = [fault for fault in history.faults if fault.forgets_leases]
    for found in claims.values():
        found.sort(key=lambda op: (op.end, op.start))
        for first, second in pairwise(found):
            if not any(_is_between(fault, first, second) for fault in forgetting):
                yield from _overlap(first, second, acts, slack_s)
        yield from _stale_acts(found, acts)


def _overlap(first: Op, second: Op, acts: dict[str, list[Op]], slack_s: float) -> Iterator[Finding]:
    is_ordered = first.end <= second.start
    if is_ordered and second.lease_no <= first.lease_no:
        yield "lease number went back", f"{first.uid}: {first.lease_no} then {second.lease_no}"
    held = _held_when_granted(first, second, acts[first.receipt])
    if not is_ordered:
        # Which of the two came first is unknown, so both orders must be impossible.
        held = min(held, _held_when_granted(second, first, acts[second.receipt]))
    if held > slack_s:
        yield TWO_AT_ONCE, f"{first.uid}: granted again {held:.3f} s before its lease could end"


def _held_when_granted(holder: Op, other: Op, acts: list[Op]) -> float:
    """For how long the holder's lease certainly still ran when the other claim was answered."""
    until = holder.start + holder.lease_s
    for act in sorted(acts, key=lambda op: op.start):
        if act.start > other.end:
            break
        if act.kind is not Kind.EXTEND:
            return 0.0
        extended = act.start + act.lease_s
        is_certain = act.outcome is Outcome.OK and act.end <= other.start
        until = extended if is_certain else min(until, extended)
    return until - other.end


def _stale_acts(claims: list[Op], acts: dict[str, list[Op]]) -> Iterator[Finding]:
    for index, holder in enumerate(claims):
        for act in acts[holder.receipt]:
            if act.outcome is not Outcome.OK:
                continue
            newer = [op for op in claims[index + 1 :] if op.start >= holder.end]
            if any(op.end < act.start and op.receipt != act.receipt for op in newer):
                yield "stale lease accepted", f"{act.uid}: {act.kind} by lease {act.lease_no}"


def _is_between(fault: Fault, first: Op, second: Op) -> bool:
    return fault.end > first.start and fault.start < second.end
