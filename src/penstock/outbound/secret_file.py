"""Reads the file that `auth.secret_file` names: a secret kept outside the database."""

from __future__ import annotations

from pathlib import Path

from penstock.domain.errors import InvalidRequest

MIN_BYTES = 32


def read_secret_file(path: str) -> bytes:
    """Its contents without surrounding white space; raises InvalidRequest."""
    try:
        secret = Path(path).read_bytes().strip()
    except OSError as error:
        raise InvalidRequest(
            f"auth.secret_file {path!r} cannot be read: {error.strerror}"
        ) from error
    if len(secret) < MIN_BYTES:
        raise InvalidRequest(
            f"auth.secret_file {path!r} has {len(secret)} bytes, but needs at least {MIN_BYTES}; "
            "create one with: openssl rand -hex 32"
        )
    return secret
