"""Logins of people: who showed an API key to the console, told by a signed text in a cookie.

No table is needed: all nodes of a store share its secret, so each can tell whether a login is
genuine, whose key it rests on and until when.  A cookie comes with every request that a browser
sends, whoever caused it; so to each login belongs a second text that only our own pages know, and
without it the first is worth nothing.
"""

from __future__ import annotations

import hmac

import msgspec

from penstock.domain.store_time import MAX_CARRY_MS

_PARTS = 4


class Login(msgspec.Struct, frozen=True):
    key_id: str
    until_at: int
    digits: str  # by chance, so that no two are the same


def sign(login: Login, *, secret: bytes) -> str:
    """What the cookie holds."""
    told = f"{login.key_id}.{login.until_at}.{login.digits}"
    return f"{told}.{_mac('login', told, secret)}"


def read(token: str, *, secret: bytes, valid_ms: int, now: int) -> Login | None:
    """None: it is not ours, it is over, or it was made by a clock in the future."""
    parts = token.split(".")
    if len(parts) != _PARTS or not token.isascii():
        return None
    key_id, until_at, digits, mac = parts
    if not hmac.compare_digest(mac, _mac("login", f"{key_id}.{until_at}.{digits}", secret)):
        return None
    login = Login(key_id, int(until_at), digits)
    return login if now < login.until_at <= now + valid_ms + MAX_CARRY_MS else None


def page_token(token: str, *, secret: bytes) -> str:
    """What our own pages send beside the cookie."""
    return _mac("page", token, secret)


def is_page_token(given: str, token: str, *, secret: bytes) -> bool:
    return given.isascii() and hmac.compare_digest(given, page_token(token, secret=secret))


def cookie_name(*, secret: bytes) -> str:
    """Browsers keep cookies by host and not by port: two brokers on a machine must not mix them."""
    return f"penstock_{_mac('cookie', '', secret)[:8]}"


def _mac(what: str, told: str, secret: bytes) -> str:
    return hmac.digest(secret, f"{what} {told}".encode(), "sha256").hex()
