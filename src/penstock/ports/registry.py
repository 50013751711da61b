"""What every store can do about workers and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.domain.fact import Fact, FactFilter
from penstock.domain.message.lifecycle import Message
from penstock.domain.worker import Worker


class Workers(Protocol):
    def add(self, worker: Worker) -> None: ...
    def find(self, worker_id: str) -> Worker | None: ...
    def to_change(self, worker_id: str) -> Worker | None:
        """Until the end of this transaction nobody else changes it."""
        ...

    def to_lose(self, worker_id: str, *, now: int) -> Worker | None:
        """The same, but None unless it is overdue, or if somebody else is at it just now."""
        ...

    def page(self, *, after: str, limit: int, with_gone: bool) -> list[Worker]:
        """By their ids, which grow with time."""
        ...

    def overdue(self, *, now: int, limit: int) -> list[Worker]:
        """Those that are not called lost yet, and were not heard of in time."""
        ...

    def lost_since(self, after: tuple[int, str], *, limit: int) -> list[Worker]:
        """Those that were called lost since that instant; at it, those with greater ids."""
        ...

    def save(self, worker: Worker) -> None: ...
    def forget(self, *, before_at: int) -> int:
        """Those that have gone before."""
        ...

    def held(
        self, worker_ids: Sequence[str], *, queues: Sequence[str] | None, limit: int
    ) -> list[Message]:
        """What they hold in these queues, or (None) anywhere, by queue and end of the lease."""
        ...


class Facts(Protocol):
    """Lines of history that are about something else than one message."""

    def add(self, kind: str, subject: str, *, at: int, data: Mapping[str, object]) -> None: ...
    def search(self, wanted: FactFilter) -> list[Fact]: ...
    def forget(self, *, before_at: int, limit: int, upto_no: int = 2**62) -> int:
        """Of those up to this number."""
        ...
