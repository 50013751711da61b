"""Claims of one transaction that one statement serves, and how its rows are shared out."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import msgspec

from penstock.domain.errors import PenstockError
from penstock.domain.message.lifecycle import Message
from penstock.ports.store import Claim
from penstock.store.database import Row
from penstock.store.verbs.transaction_state import message_of

# Bodies read by one transaction: many large claims at once must not exhaust the memory.
MAX_TRANSACTION_BYTES = 32 * 1024 * 1024
_SIZE_AT = Message.__struct_fields__.index("size")
_as_claimed = itemgetter(
    *(Message.__struct_fields__.index(name) for name in ("priority", "fair_position", "order_no"))
)


class ClaimBatch(msgspec.Struct):
    """Claims that differ only in their limits.

    A statement returns no more bytes than fit into one answer.  So it may serve only some of the
    claims; another statement serves the rest.
    """

    claims: list[Claim]
    places: list[int]
    parts: list[list[Message]] = []  # one for each claim that got messages
    error: PenstockError | None = None
    allowed: int | None = None  # messages, by the limits of the queue
    bytes_left: int = MAX_TRANSACTION_BYTES
    is_full: bool = False  # the last statement ended because an answer was full
    is_short: bool = False  # … because nothing claimable was left

    @property
    def queue_no(self) -> int:
        return self.claims[0].queue_no

    @property
    def is_alone(self) -> bool:
        return _is_alone(self.claims[0])

    @property
    def kinds(self) -> tuple[str, ...] | None:
        return self.claims[0].kinds

    @property
    def messages(self) -> list[Message]:
        return self.parts[0] if len(self.parts) == 1 else [m for part in self.parts for m in part]

    @property
    def wanted(self) -> int:
        """Messages wanted by claims that have not been served yet."""
        return sum(map(self._limit, self.claims[len(self.parts) :]))

    @property
    def sought(self) -> int:
        return self.wanted if self.allowed is None else min(self.wanted, self.allowed - self._taken)

    @property
    def max_bytes(self) -> int:
        """The limit of one statement."""
        most = self.claims[0].max_bytes
        return min(most, self.bytes_left) if self.bytes_left > 0 else most

    @property
    def has_unserved(self) -> bool:
        return len(self.parts) < len(self.claims) and self.error is None

    @property
    def _taken(self) -> int:
        return sum(map(len, self.parts))

    def is_filled_by(self, rows: Sequence[Row]) -> bool:
        """Whether the next message may have been left out because it did not fit."""
        return total_size(rows) * 2 > self.max_bytes

    def deal(self, rows: Sequence[Row]) -> None:
        """Distribute the rows of a statement among the claims, in their order."""
        is_less = len(rows) < self.sought
        self.is_full = is_less and self.is_filled_by(rows)
        self.is_short = is_less and not self.is_full
        messages = [message_of(row) for row in sorted(rows, key=_as_claimed)]
        start = 0
        for claim in self.claims[len(self.parts) :]:
            part = messages[start : start + self._limit(claim)]
            if not part:
                break
            self.parts.append(part)
            start += len(part)
        self.bytes_left -= total_size(rows)

    def _limit(self, claim: Claim) -> int:
        return claim.limit if self.bytes_left > 0 else 1


def total_size(rows: Sequence[Row]) -> int:
    return sum(row[_SIZE_AT] for row in rows)


def group_alike(wanted: Sequence[Claim]) -> list[ClaimBatch]:
    batches: dict[object, ClaimBatch] = {}
    for i, claim in enumerate(wanted):
        place = i if _is_alone(claim) else None
        key = (
            claim.queue_no,
            claim.lease_ms,
            claim.claimed_by,
            claim.kinds,
            claim.max_bytes,
            place,
        )
        batch = batches.setdefault(key, ClaimBatch([], []))
        batch.claims.append(claim)
        batch.places.append(i)
    for batch in batches.values():
        batch.bytes_left = MAX_TRANSACTION_BYTES * len(batch.claims) // len(wanted)
    return list(batches.values())


def _is_alone(claim: Claim) -> bool:
    """Whether it must not share a statement: a run or a repeatable claim must stay whole."""
    return claim.in_a_row or claim.claim_key is not None
