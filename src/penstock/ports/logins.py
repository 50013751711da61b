"""What every store keeps of the console's logins."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.access.login import Login


class Logins(Protocol):
    def add(self, login: Login) -> None: ...
    def find(self, token_hash: str) -> Login | None: ...
    def remove(self, token_hash: str) -> None: ...
    def prune(self, *, now: int) -> int:
        """Remove those that have expired; returns how many."""
        ...
