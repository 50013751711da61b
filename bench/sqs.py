"""What speaking SQS costs: our SQS face beside our native API, on one server.

Both are asked in turns, so that a busy moment of the machine falls on both of a
pair; and both send into queues that keep messages as long as SQS does, so that the store has the
same to do for either.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.clients.base import Endpoint
from bench.generator import Job, run_apart
from bench.install import MissingError
from bench.loads import BY_NAME, Load
from bench.peers.base import Peer
from bench.peers.penstock import Penstock, PenstockSqs
from bench.processes import StartError
from bench.workspace import Workspace

# SendMessage does what a native send does, and an MD5 sum of the body on top.
AIM = 0.85
LOAD = BY_NAME["send"]
RETENTION_MS = 4 * 24 * 3600 * 1000  # of a queue that SQS has made
PAIRS = 4  # in a round
SHARE = 3  # of a measurement: each of a pair takes one part in so many


@dataclass(frozen=True)
class BesideNative:
    """Single sends, in messages per second: natively, and as SQS right before or after."""

    pairs: Sequence[tuple[float, float]]

    @property
    def native(self) -> float:
        return statistics.median(native for native, _ in self.pairs)

    @property
    def sqs(self) -> float:
        return statistics.median(sqs for _, sqs in self.pairs)

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def ratios(self) -> list[float]:
        return sorted(sqs / native for native, sqs in self.pairs)

    @property
    def is_met(self) -> bool:
        return self.ratio >= AIM


def rows(peers: Sequence[Peer]) -> list[Peer]:
    """The peers in the SQS table: all that speak it, and our native API to compare with."""
    speakers = [peer for peer in peers if peer.speaks_sqs()]
    ours = [peer for peer in speakers if isinstance(peer, Penstock)]
    native = [peer for peer in peers if peer.name == Penstock.name]
    return [*ours, *native, *(peer for peer in speakers if peer not in ours)]


def is_wanted(speakers: Sequence[Peer], loads: Sequence[Load]) -> bool:
    return LOAD in loads and any(peer.name == PenstockSqs.name for peer in speakers)


def measure(
    workspace: Workspace, *, rounds: int, seconds: float, connections: int
) -> BesideNative | str:
    """The figures, or why they are missing."""
    server, folder = Penstock(), workspace.fresh("beside-native")
    try:
        server.find(may_install=False)
        endpoint = server.start(folder)
        both = {
            Penstock.client: {**endpoint, "retention_ms": RETENTION_MS},
            PenstockSqs.client: endpoint,
        }
        pairs = []
        for number in range(PAIRS * rounds):
            order = list(both) if number % 2 else list(reversed(both))
            rates = {name: _rate(name, both[name], connections, seconds) for name in order}
            pairs.append((rates[Penstock.client], rates[PenstockSqs.client]))
    except (MissingError, StartError, _InvalidError) as error:
        return str(error)
    finally:
        server.stop()
        workspace.drop(folder)
    return BesideNative(pairs)


class _InvalidError(Exception):
    """A measurement that is discarded."""


def _rate(client: str, endpoint: Endpoint, connections: int, seconds: float) -> float:
    queue = f"beside-{client}"
    job = Job(client, endpoint, queue, LOAD, connections, seconds / SHARE)
    outcome = run_apart(job)
    if outcome.error:
        raise _InvalidError(f"{client}: {outcome.error}")
    return outcome.rate
