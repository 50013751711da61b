"""I4: within a group, a message is handed out only when those sent before it are finished.

Several messages of one group may come in one answer, in order: they are one holder's work.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from tests.faults.history import History, Kind, Op, Outcome

Finding = tuple[str, str]


def findings(history: History) -> Iterator[Finding]:
    finished: dict[str, float] = {}
    for op in history.of(Kind.COMPLETE, Outcome.OK, Outcome.UNKNOWN):
        if op.group:
            finished[op.uid] = min(op.start, finished.get(op.uid, math.inf))
    earlier = _sent_in_order(history)
    together: dict[int, dict[str, int]] = defaultdict(dict)
    claims = [op for op in history.of(Kind.CLAIM, Outcome.OK) if op.group]
    for op in claims:
        together[op.answer][op.uid] = op.place
    for op in claims:
        before = earlier[op.group][: max(op.seq - 1, 0)]
        # Only the nearest unfinished one matters; older ones were checked with their successors.
        for sent in reversed(before[-20:]):
            place = together[op.answer].get(sent.uid)
            if place is not None and place < op.place:
                continue
            if finished.get(sent.uid, math.inf) > op.end:
                yield "out of order", f"{op.uid} handed out while {sent.uid} was unfinished"
                break


def _sent_in_order(history: History) -> dict[str, list[Op]]:
    """The acknowledged messages of each group in order; each was acknowledged before the next."""
    groups: dict[str, list[Op]] = defaultdict(list)
    for op in history.of(Kind.SEND, Outcome.OK):
        if op.group:
            groups[op.group].append(op)
    for ops in groups.values():
        ops.sort(key=lambda op: op.seq)
    return groups
