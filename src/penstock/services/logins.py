"""Console logins: opens one with a key, looks it up, ends it."""

from __future__ import annotations

import re

import msgspec

from penstock.domain.access import login
from penstock.domain.access.api_key import Caller
from penstock.domain.access.login import Login
from penstock.domain.errors import Unauthenticated
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.services.keys import Keyring

FRESH_MS = 1_000  # how long a node may accept a login that was ended on another node
_DIGITS = 40
_TOKEN = re.compile(f"[0-9a-f]{{{_DIGITS}}}")
_MAX_REMEMBERED = 10_000


class LoggedIn(msgspec.Struct, frozen=True):
    caller: Caller
    token: str  # for the cookie
    page_token: str  # for the page
    until_at: int


class _Seen(msgspec.Struct, frozen=True):
    found: Login | None
    until_at: int  # how long this counts


class LoginService:
    def __init__(
        self, store: Store, keyring: Keyring, clock: Clock, dice: Dice, *, valid_ms: int
    ) -> None:
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._dice = dice
        self._valid_ms = valid_ms
        self._seen: dict[str, _Seen] = {}  # by the hash of the token
        self.cookie = login.cookie_name(secret=store.secret)

    def open(self, key: str) -> Ticket[LoggedIn]:
        """Raises Unauthenticated."""
        caller = self._keyring.caller(key)
        key_id = key.split("_")[1]  # it is a known key
        token, now = self._dice.digits(_DIGITS), self._clock.now()
        made = Login(login.hash_token(token), key_id, now + self._valid_ms)

        def do(session: Session) -> LoggedIn:
            session.logins.prune(now=now)
            session.logins.add(made)
            return _logged_in(made, token, caller)

        return self._store.write(do)

    def close(self, token: str) -> Ticket[None]:
        """End it, on this node now and on the others within `FRESH_MS`."""
        token_hash = login.hash_token(token)
        until_at = self._clock.now() + self._valid_ms  # even if a concurrent load still finds it
        self._remember(token_hash, _Seen(None, until_at))
        return self._store.write(lambda session: session.logins.remove(token_hash))

    def is_fresh(self, token: str) -> bool:
        """Whether `find` can be called; otherwise load the login first."""
        if not _TOKEN.fullmatch(token):
            return True  # not a login token
        seen = self._seen.get(login.hash_token(token))
        return seen is not None and self._clock.now() < seen.until_at

    def load(self, token: str) -> Ticket[None]:
        token_hash = login.hash_token(token)

        def look(session: Session) -> None:
            found = session.logins.find(token_hash)
            now = self._clock.now()
            seen = self._seen.get(token_hash)
            if seen is None or seen.until_at <= now:
                self._remember(token_hash, _Seen(found, now + FRESH_MS))

        return self._store.read(look)

    def find(self, token: str) -> LoggedIn | None:
        """The loaded login; None: it has expired, was never opened, or its key was revoked."""
        seen = self._seen.get(login.hash_token(token))
        found = None if seen is None else seen.found
        if found is None or not self._is_valid(found):
            return None
        caller = self._keyring.caller_with(found.key_id)
        return None if caller is None else _logged_in(found, token, caller)

    def _is_valid(self, found: Login) -> bool:
        return login.is_valid(found, valid_ms=self._valid_ms, now=self._clock.now())

    def caller(self, token: str, page_token: str | None) -> Caller:
        """Raises Unauthenticated, also for a cookie without its page token."""
        found = self.find(token)
        if found is None:
            raise Unauthenticated("this login has expired: log in again at /console/login")
        if page_token is None or not login.is_page_token(page_token, token):
            raise Unauthenticated("a login counts only together with its x-csrf-token")
        return found.caller

    def _remember(self, token_hash: str, seen: _Seen) -> None:
        if len(self._seen) >= _MAX_REMEMBERED:
            self._seen.clear()  # they are loaded again
        self._seen[token_hash] = seen


def _logged_in(found: Login, token: str, caller: Caller) -> LoggedIn:
    return LoggedIn(caller, token, login.page_token(token), found.until_at)
