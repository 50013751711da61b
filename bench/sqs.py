"""What speaking SQS costs: our SQS face beside our native API, in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.loads import BY_NAME
from bench.peers.base import Peer
from bench.peers.penstock import Penstock, PenstockSqs
from bench.runner import Results
from bench.table import cell

# SendMessage does what a native send does, and an MD5 sum of the body on top.
AIM = 0.85
LOAD = BY_NAME["send"].name


@dataclass(frozen=True)
class BesideNative:
    """Single sends, in messages per second."""

    native: float
    sqs: float

    @property
    def ratio(self) -> float:
        return self.sqs / self.native

    @property
    def is_met(self) -> bool:
        return self.ratio >= AIM


def rows(peers: Sequence[Peer]) -> list[Peer]:
    """Who is in the SQS table: all who speak it, and our native API to compare with."""
    speakers = [peer for peer in peers if peer.speaks_sqs()]
    ours = [peer for peer in speakers if isinstance(peer, Penstock)]
    native = [peer for peer in peers if peer.name == Penstock.name]
    return [*ours, *native, *(peer for peer in speakers if peer not in ours)]


def beside_native(results: Results) -> BesideNative | None:
    """None when either of them was not measured, or not well."""
    native, sqs = (
        cell(results.outcomes.get((peer.name, LOAD), [])).rate for peer in (Penstock, PenstockSqs)
    )
    return BesideNative(native, sqs) if native and sqs else None
