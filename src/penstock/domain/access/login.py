"""Console logins: the API key that was presented, and until when the login is valid.

The cookie holds a random token, the store only its hash: a reader of the store cannot forge a
cookie, and a login that was ended is ended on every node.  Browsers send cookies with every
request, whichever page caused it, so each login has a second token that only our own pages get; the
cookie is useless without it.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from penstock.domain.store.store_time import MAX_CARRY_MS


class Login(msgspec.Struct, frozen=True):
    token_hash: str
    key_id: str
    until_at: int


def hash_token(token: str) -> str:
    """Tokens are 160 random bits, so one fast hash is enough."""
    return _digest("login", token)


def is_valid(login: Login, *, valid_ms: int, now: int) -> bool:
    """False if it has expired, or was issued by a clock that was ahead."""
    return now < login.until_at <= now + valid_ms + MAX_CARRY_MS


def page_token(token: str) -> str:
    """The token that our own pages send besides the cookie; derived from it and not stored."""
    return _digest("page", token)


def is_page_token(given: str, token: str) -> bool:
    return given.isascii() and hmac.compare_digest(given, page_token(token))


def cookie_name(*, secret: bytes) -> str:
    """Browsers keep cookies per host, not per port: two brokers on one machine need two names."""
    return f"penstock_{hmac.digest(secret, b'cookie ', 'sha256').hex()[:8]}"


def _digest(purpose: str, token: str) -> str:
    return hashlib.sha256(f"penstock {purpose} {token}".encode()).hexdigest()
