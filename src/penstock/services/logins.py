"""What the console's door can ask: let somebody in who shows a key, and know them again."""

from __future__ import annotations

import msgspec

from penstock.domain import login
from penstock.domain.access import Caller
from penstock.domain.errors import Unauthenticated
from penstock.domain.login import Login
from penstock.ports.clock import Clock, Dice
from penstock.services.keys import Keyring

_DIGITS = 32


class LoggedIn(msgspec.Struct, frozen=True):
    caller: Caller
    token: str  # for the cookie
    page_token: str  # for the page
    until_at: int


class Logins:
    def __init__(
        self, keyring: Keyring, clock: Clock, dice: Dice, *, secret: bytes, valid_ms: int
    ) -> None:
        self._keyring = keyring
        self._clock = clock
        self._dice = dice
        self._secret = secret
        self._valid_ms = valid_ms
        self.cookie = login.cookie_name(secret=secret)

    def open(self, key: str) -> LoggedIn:
        """Raises Unauthenticated."""
        caller = self._keyring.caller(key)
        key_id = key.split("_")[1]  # it is a known key
        made = Login(key_id, self._clock.now() + self._valid_ms, self._dice.digits(_DIGITS))
        return self._told(made, login.sign(made, secret=self._secret), caller)

    def find(self, token: str) -> LoggedIn | None:
        """None: it is over, forged, or its key was revoked."""
        found = login.read(
            token, secret=self._secret, valid_ms=self._valid_ms, now=self._clock.now()
        )
        caller = None if found is None else self._keyring.caller_with(found.key_id)
        if found is None or caller is None:
            return None
        return self._told(found, token, caller)

    def caller(self, token: str, page_token: str | None) -> Caller:
        """Who acts.  Raises Unauthenticated, also for a cookie that comes alone."""
        found = self.find(token)
        if found is None:
            raise Unauthenticated("this login is over: log in again at /console/login")
        if page_token is None or not login.is_page_token(page_token, token, secret=self._secret):
            raise Unauthenticated("a login counts only together with its x-csrf-token")
        return found.caller

    def _told(self, made: Login, token: str, caller: Caller) -> LoggedIn:
        page_token = login.page_token(token, secret=self._secret)
        return LoggedIn(caller, token, page_token, made.until_at)
