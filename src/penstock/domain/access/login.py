"""Logins of people: who showed an API key to the console, and until when that counts.

The cookie holds a random token, and the store its hash: a reader of the store cannot make a cookie
of it, and a login that was ended is ended on every node.  A browser sends a cookie with every
request, whichever page caused it; so each login has a second text that only our own pages learn,
and without it the first is worth nothing.
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
    """Tokens are 160 random bits, so one fast hash is enough: there is nothing to guess."""
    return _digest("login", token)


def is_valid(login: Login, *, valid_ms: int, now: int) -> bool:
    """Not over yet, and not made by a clock in the future."""
    return now < login.until_at <= now + valid_ms + MAX_CARRY_MS


def page_token(token: str) -> str:
    """What our own pages send beside the cookie; derived from the token, which is not stored."""
    return _digest("page", token)


def is_page_token(given: str, token: str) -> bool:
    return given.isascii() and hmac.compare_digest(given, page_token(token))


def cookie_name(*, secret: bytes) -> str:
    """Browsers keep cookies by host and not by port: two brokers on a machine must not mix them."""
    return f"penstock_{hmac.digest(secret, b'cookie ', 'sha256').hex()[:8]}"


def _digest(purpose: str, token: str) -> str:
    return hashlib.sha256(f"penstock {purpose} {token}".encode()).hexdigest()
