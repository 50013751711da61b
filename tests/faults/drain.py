"""After the faults: complete everything that is left, then read the totals."""

from __future__ import annotations

import threading
import time

from tests.faults.consumers import claim, complete_all
from tests.faults.history import History, Op, Outcome
from tests.faults.load import read_totals
from tests.faults.wire import Wire

LEASE_MS = 10_000
DRAINERS = 2
LIVE = ("now_waiting", "now_ready", "now_leased")


def drain(port: int, history: History, queues: tuple[str, ...], *, within_s: float) -> list[Op]:
    """Claim and complete until the queues are empty or time is up; returns the last totals."""
    deadline = time.monotonic() + within_s
    wire = Wire(port)
    while True:
        totals = _drain_once(port, wire, history, queues, deadline)
        # Not empty after all: a sync failed, and completions that were visible are undone.
        if _all_zero(totals) or time.monotonic() >= deadline:
            break
    wire.close()
    history.add(*totals)
    return totals


def _drain_once(
    port: int, wire: Wire, history: History, queues: tuple[str, ...], deadline: float
) -> list[Op]:
    empty = threading.Event()
    threads = [
        threading.Thread(
            target=_drain_one, args=(port, history, queue, empty, deadline), daemon=True
        )
        for queue in queues
        for _ in range(DRAINERS)
    ]
    for thread in threads:
        thread.start()
    totals = [read_totals(wire, queue) for queue in queues]
    while time.monotonic() < deadline and not _all_zero(totals):
        time.sleep(0.05)
        totals = [read_totals(wire, queue) for queue in queues]
    empty.set()
    for thread in threads:
        thread.join(60)
    # Read again: a last completion may have been in progress.
    return [read_totals(wire, queue) for queue in queues]


def _drain_one(
    port: int, history: History, queue: str, empty: threading.Event, deadline: float
) -> None:
    wire = Wire(port)
    try:
        while not empty.is_set() and time.monotonic() < deadline:
            answer, claims = claim(wire, history, queue, limit=10, lease_ms=LEASE_MS)
            if claims:
                complete_all(wire, history, claims)
            elif answer.outcome is not Outcome.OK:
                time.sleep(0.05)
    except Exception as error:
        history.problems.append(f"the drain of {queue} died: {error!r}")
    finally:
        wire.close()


def _all_zero(totals: list[Op]) -> bool:
    return all(
        op.outcome is Outcome.OK and not any(op.totals.get(name, 0) for name in LIVE)
        for op in totals
    )
