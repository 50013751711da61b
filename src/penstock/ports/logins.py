"""Protocol of a store for console logins."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.access.login import Login


class LoginStore(Protocol):
    def add(self, login: Login) -> None: ...
    def find(self, token_hash: str) -> Login | None: ...
    def remove(self, token_hash: str) -> None: ...
    def prune(self, *, now: int) -> int:
        """Remove those that have expired; returns how many."""
        ...
