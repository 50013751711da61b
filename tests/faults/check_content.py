"""I1 and I3: after the drain everything acknowledged was delivered intact, and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.faults.history import History, Kind, Op, Outcome

Finding = tuple[str, str]


def findings(history: History) -> Iterator[Finding]:
    sends = {op.uid: op for op in history.of(Kind.SEND)}
    claims = _by_uid(history.of(Kind.CLAIM, Outcome.OK))
    finished = _by_uid(history.of(Kind.COMPLETE, Outcome.OK))
    maybe = _by_uid(history.of(Kind.COMPLETE, Outcome.UNKNOWN))
    for uid, op in sends.items():
        if op.outcome is Outcome.OK and uid not in finished and uid not in maybe:
            seen = "claimed, never finished" if uid in claims else "never seen again"
            yield "lost", f"{uid} ({op.message_id}) acknowledged and {seen}"
    for uid, found in claims.items():
        yield from _unexpected(uid, found, sends.get(uid))
    for uid, done in finished.items():
        yield from _resurrected(uid, done, claims.get(uid, []))


def _unexpected(uid: str, claims: list[Op], sent: Op | None) -> Iterator[Finding]:
    if sent is None:
        yield "unexpected", f"{uid or claims[0].body!r} was never sent"
        return
    if sent.outcome is Outcome.FAIL:
        yield "unexpected", f"{uid} was refused and came out all the same"
    for op in claims:
        if op.body != sent.body or op.queue != sent.queue:
            yield "corrupt", f"{uid} came out of {op.queue} as {str(op.body)[:80]!r}"
    ids = {op.message_id for op in claims} | ({sent.message_id} if sent.message_id else set())
    if len(ids) > 1:
        yield "stored twice", f"{uid} is {len(ids)} messages: {sorted(ids)}"


def _resurrected(uid: str, done: list[Op], claims: list[Op]) -> Iterator[Finding]:
    if len(done) > 1:
        yield "completed twice", f"{uid}: {len(done)} acknowledged completions"
    first = min(op.end for op in done)
    for op in claims:
        if op.start > first:
            yield "resurrected", f"{uid} claimed {op.start - first:.3f} s after it was completed"


def _by_uid(ops: Iterator[Op]) -> dict[str, list[Op]]:
    grouped: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        grouped[op.uid].append(op)
    return grouped
