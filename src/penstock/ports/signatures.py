"""Protocol for the key pair that signs SNS's envelopes."""

from __future__ import annotations

from typing import Protocol


class KeyPair(Protocol):
    @property
    def certificate(self) -> str:
        """In PEM."""
        ...

    def sign(self, text: str, version: str) -> str:
        """In base64; version 1 is SHA-1 with RSA, version 2 SHA-256."""
        ...


class KeyPairs(Protocol):
    def generate(self, *, now: int) -> str:
        """A new key pair as text, to be stored."""
        ...

    def read(self, text: str) -> KeyPair: ...
