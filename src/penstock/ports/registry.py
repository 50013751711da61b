"""Protocols of a store: workers, facts, API keys and console logins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.domain.access.api_key import ApiKey
from penstock.domain.access.login import Login
from penstock.domain.fact import Fact, FactFilter
from penstock.domain.message.lifecycle import Message
from penstock.domain.worker import Worker


class WorkerStore(Protocol):
    def add(self, worker: Worker) -> None: ...
    def find(self, worker_id: str) -> Worker | None: ...
    def lock(self, worker_id: str) -> Worker | None:
        """The worker, locked until the end of this transaction."""
        ...

    def lock_overdue(self, worker_id: str, *, now: int) -> Worker | None:
        """The same, but None unless it is overdue, or while another node has it locked."""
        ...

    def page(self, *, after: str, limit: int, with_gone: bool) -> list[Worker]:
        """Workers by id, which grows with time."""
        ...

    def overdue(self, *, now: int, limit: int) -> list[Worker]:
        """Workers that missed their beats and are not marked lost yet."""
        ...

    def lost_since(self, after: tuple[int, str], *, limit: int) -> list[Worker]:
        """Workers marked lost since that instant; at the instant itself, those with greater ids."""
        ...

    def save(self, worker: Worker) -> None: ...
    def forget(self, *, before_at: int) -> int:
        """Remove workers that were gone before this instant."""
        ...

    def leases(
        self, worker_ids: Sequence[str], *, queues: Sequence[str] | None, limit: int
    ) -> list[Message]:
        """Their leases in these queues (None: in all), by queue and end of lease."""
        ...


class FactStore(Protocol):
    """Lines of history that are not about one message."""

    def add(self, kind: str, subject: str, *, at: int, data: Mapping[str, object]) -> None: ...
    def search(self, wanted: FactFilter) -> list[Fact]: ...
    def forget(self, *, before_at: int, limit: int, upto_no: int = 2**62) -> int:
        """Remove old facts up to this number."""
        ...


class KeyStore(Protocol):
    def add(self, key: ApiKey) -> None: ...
    def all(self) -> list[ApiKey]: ...
    def revoke(self, key_id: str, *, now: int) -> bool: ...
    def use(self, key_id: str, *, now: int) -> None:
        """Note that it was used."""
        ...


class LoginStore(Protocol):
    def add(self, login: Login) -> None: ...
    def find(self, token_hash: str) -> Login | None: ...
    def remove(self, token_hash: str) -> None: ...
    def prune(self, *, now: int) -> int:
        """Remove those that have expired; returns how many."""
        ...
