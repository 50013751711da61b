"""I5 and I7: the counters balance and agree with what clients saw, and no total ever decreases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.faults.history import History, Kind, Op, Outcome

Finding = tuple[str, str]
LIVE = ("now_waiting", "now_ready", "now_leased")
ENDED = ("done", "dead", "cancelled")
GROWING = ("sent", *ENDED)


def findings(history: History, totals: list[Op], *, ids_are_ordered: bool) -> Iterator[Finding]:
    for op in totals:
        if op.outcome is Outcome.OK:
            yield from _balance(history, op)
    yield from _counters(history)
    if ids_are_ordered:
        yield from _ids(history)


def _balance(history: History, book: Op) -> Iterator[Finding]:
    live = sum(book.totals[name] for name in LIVE)
    ended = sum(book.totals[name] for name in ENDED)
    if book.totals["sent"] != live + ended:
        sent = book.totals["sent"]
        yield "totals do not balance", f"{book.queue}: sent {sent}, live {live}, ended {ended}"
    if live:
        yield "not drained", f"{book.queue}: {live} messages live after the drain: {book.totals}"
    for total, kind in (("sent", Kind.SEND), ("done", Kind.COMPLETE)):
        least = len({op.uid for op in history.of(kind, Outcome.OK) if op.queue == book.queue})
        perhaps = {op.uid for op in history.of(kind, Outcome.UNKNOWN) if op.queue == book.queue}
        if not least <= book.totals[total] <= least + len(perhaps):
            yield (
                "totals do not balance",
                f"{book.queue}: {total} {book.totals[total]}, but clients saw {least} "
                f"and at most {len(perhaps)} more",
            )


def _counters(history: History) -> Iterator[Finding]:
    samples: dict[str, list[Op]] = defaultdict(list)
    for op in history.of(Kind.STATS, Outcome.OK):
        samples[op.queue].append(op)
    for queue, ops in samples.items():
        ops.sort(key=lambda op: op.start)
        for earlier, later in pairwise(ops):
            if earlier.end > later.start:
                continue
            for name in GROWING:
                was, became = earlier.totals[name], later.totals[name]
                if became < was:
                    yield "counter went back", f"{queue}: {name} from {was} to {became}"


def _ids(history: History) -> Iterator[Finding]:
    """Ids are time-ordered: a send that started after another was acknowledged has no older id."""
    by_worker: dict[str, list[Op]] = defaultdict(list)
    for op in history.of(Kind.SEND, Outcome.OK):
        by_worker[op.worker].append(op)
    for ops in by_worker.values():
        ops.sort(key=lambda op: op.start)
        for earlier, later in pairwise(ops):
            if earlier.end <= later.start and _instant(later) < _instant(earlier):
                yield "id went back", f"{earlier.message_id} then {later.message_id}"


def _instant(op: Op) -> str:
    """The first 48 bits of a UUIDv7."""
    return op.message_id.replace("-", "")[:12]
