"""Records a batch of outcomes exactly as if they had been recorded one by one.

gateleen counts, judges and trims after every single outcome.  Within a batch the ratio may cross
the threshold and come back, so the batch is replayed here.  That requires the number of stored
outcomes, how many of them are too old to count, which requests of the batch are among them, and, if
the limit is reached, the oldest ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import msgspec

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import Circuit, CircuitState, OutcomeCounts, RequestOutcome
from penstock.domain.circuit.murmur import murmur3_128
from penstock.domain.circuit.settings import BreakerSettings

MAX_ID_BYTES = 256  # an index row of PostgreSQL holds at most about 2,700 bytes

Batch = Sequence[tuple[str, RequestOutcome]]


class OutcomeWindow:
    """The window of successes or of failures: the part that a batch can change.

    `known` has the requests of the batch that are in the window, and as many of the oldest requests
    as may have to be removed.
    """

    def __init__(self, size: int, old: int, known: Mapping[str, int], *, since: int) -> None:
        self.size = size
        self.counted = size - old  # within the window
        self.noted: dict[str, int] = {}
        self.removed: set[str] = set()
        self._since = since
        self._known = dict(known)
        self._oldest = [(at, name) for name, at in known.items()]
        heapq.heapify(self._oldest)

    def note(self, request_id: str, *, now: int) -> None:
        before = self._known.get(request_id)
        if before is None:
            self.size += 1
        if before is None or before < self._since:
            self.counted += 1
        if before != now:
            heapq.heappush(self._oldest, (now, request_id))
        self._known[request_id] = self.noted[request_id] = now
        self.removed.discard(request_id)

    def trim(self, most: int) -> None:
        while self.size > most:
            at, request_id = heapq.heappop(self._oldest)
            if self._known.get(request_id) != at:
                continue  # it has been retried since
            del self._known[request_id]
            self.noted.pop(request_id, None)
            self.removed.add(request_id)
            self.size -= 1
            self.counted -= at >= self._since


class OutcomeWindows(msgspec.Struct, frozen=True):
    success: OutcomeWindow
    failure: OutcomeWindow

    @property
    def tally(self) -> OutcomeCounts:
        return OutcomeCounts(self.success.counted, self.failure.counted)

    def of(self, outcome: RequestOutcome) -> OutcomeWindow:
        return self.success if outcome is RequestOutcome.SUCCESS else self.failure


def note_all(
    circuit: Circuit, windows: OutcomeWindows, batch: Batch, settings: BreakerSettings, *, now: int
) -> tuple[Circuit, int | None]:
    """Return the changed circuit, and the index of the outcome that opened it, if any."""
    opened_by = None
    for i, (request_id, outcome) in enumerate(batch):
        windows.of(outcome).note(request_id, now=now)
        judged = circuits.judge(circuit, windows.tally, settings, now=now)
        if judged.state is CircuitState.OPEN and circuit.state is CircuitState.CLOSED:
            opened_by = i
        circuit = judged
        windows.success.trim(settings.max_queue_sample_count)
        windows.failure.trim(settings.max_queue_sample_count)
    return circuit, opened_by


def max_removable(size: int, batch: int, most: int) -> int:
    """How many of the oldest outcomes may have to be removed.

    `batch`: the number of different requests in the batch.
    """
    return max(size + batch - most, 0)


def stored_request_id(request_id: str) -> str:
    """The id as it is stored: shortened, and without characters that a store rejects."""
    text = request_id.encode("utf-8", "replace").decode().replace("\0", "")
    if len(text.encode()) <= MAX_ID_BYTES:
        return text
    return f"{text[:40]}~{murmur3_128(text.encode())}"
