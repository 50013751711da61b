"""Runs the clients of one workload as threads, watches the counters, and stops them again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.faults.consumers import consume
from tests.faults.history import Fault, History, Kind, Op, Outcome
from tests.faults.producers import produce, send_in_order
from tests.faults.wire import Wire
from tests.faults.workload import FIFO, STANDARD, ClientContext, Workload, settings_of

SAMPLE_EVERY_S = 0.2


class Load:
    """Use as a context manager: clients run inside it and are gone after it."""

    def __init__(self, ports: Sequence[int], workload: Workload, *, seed: int) -> None:
        self.history = History()
        self.workload = workload
        self._context = ClientContext(ports, workload, self.history)
        self._seed = seed
        self._threads: list[threading.Thread] = []

    def make_queues(self) -> None:
        wire = self._context.wire(0)
        for queue in (STANDARD, FIFO):
            answer = wire.call("PUT", f"/v1/queues/{queue}", settings_of(queue, self.workload))
            assert answer.outcome is Outcome.OK, f"no queue {queue}: {answer}"
        wire.close()

    def __enter__(self) -> Load:
        w = self.workload
        for n in range(w.producers):
            self._run(produce, n)
        for n in range(w.senders):
            self._run(send_in_order, n)
        for n in range(w.consumers):
            self._run(consume, n, FIFO if n % 3 == 2 else STANDARD)
        self._run(_sample, 0)
        return self

    def __exit__(self, *_: object) -> None:
        self._context.stopped.set()
        for thread in self._threads:
            thread.join(self.workload.timeout_s + 15)
            if thread.is_alive():
                self.history.problems.append(f"client thread {thread.name} is stuck")

    def wait_for_sends(self, count: int, *, within_s: float) -> None:
        """Wait until `count` more sends are acknowledged: a fault needs load."""
        wanted = self.history.acked() + count
        deadline = time.monotonic() + within_s
        while self.history.acked() < wanted and time.monotonic() < deadline:
            if self.history.problems:
                return
            time.sleep(0.01)

    def fault(self, what: str, act: Callable[[], Any], *, forgets_leases: bool = False) -> Any:
        """Carry out a fault and record when."""
        start = time.monotonic()
        result = act()
        self.history.faults.append(Fault(what, start, time.monotonic(), forgets_leases))
        return result

    def _run(self, target: Callable[..., None], number: int, *more: Any) -> None:
        seed = self._seed * 1000 + len(self._threads)
        name = f"{target.__name__}-{number}"

        def guarded() -> None:
            try:
                target(self._context, number, seed, *more)
            except Exception as error:
                self.history.problems.append(f"client thread {name} died: {error!r}")

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()


def read_totals(wire: Wire, queue: str) -> Op:
    """The queue's counts and totals, in one flat dictionary, as an operation with an interval."""
    answer = wire.call("GET", f"/v1/queues/{queue}")
    totals: dict[str, int] = {}
    if answer.outcome is Outcome.OK:
        totals = dict(answer.data["totals"])
        totals |= {f"now_{name}": count for name, count in answer.data["counts"].items()}
    return Op(
        kind=Kind.STATS,
        outcome=answer.outcome,
        start=answer.start,
        end=answer.end,
        queue=queue,
        totals=totals,
    )


def _sample(context: ClientContext, number: int, seed: int) -> None:
    wire = context.wire(number)
    while not context.stopped.wait(SAMPLE_EVERY_S):
        for queue in (STANDARD, FIFO):
            context.history.add(read_totals(wire, queue))
    wire.close()
