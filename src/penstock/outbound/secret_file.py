"""The file that `auth.secret_file` names: a secret that is not in the database."""

from __future__ import annotations

from pathlib import Path

from penstock.domain.errors import InvalidRequest

LEAST_BYTES = 32


def read_secret_file(path: str) -> bytes:
    """Its contents without white space around them; raises InvalidRequest."""
    try:
        secret = Path(path).read_bytes().strip()
    except OSError as error:
        raise InvalidRequest(
            f"auth.secret_file {path!r} cannot be read: {error.strerror}"
        ) from error
    if len(secret) < LEAST_BYTES:
        raise InvalidRequest(
            f"auth.secret_file {path!r} has {len(secret)} bytes, which is less than {LEAST_BYTES}; "
            "make one with: openssl rand -hex 32"
        )
    return secret
