"""API keys and console logins: creates, lists and ends them, and identifies callers."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access import login
from penstock.domain.access.api_key import ANYONE, ApiKey, Caller, Role
from penstock.domain.access.login import Login
from penstock.domain.errors import InvalidRequest, NotFound, Unauthenticated
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.ports.unit_of_work import Work, read, write

_log = logging.getLogger("penstock.keys")

PREFIX = "pk"
_ID_DIGITS = 10
_SECRET_DIGITS = 40
FRESH_MS = 1_000  # how long a node may accept a login that was ended on another node
_TOKEN_DIGITS = 40
_TOKEN = re.compile(f"[0-9a-f]{{{_TOKEN_DIGITS}}}")
_MAX_REMEMBERED = 10_000
_USE_EVERY_MS = 60_000  # how often the use of a key is noted


class NewKey(msgspec.Struct, frozen=True):
    key: ApiKey
    secret: str  # shown once, never stored


class Signer(msgspec.Struct, frozen=True):
    """A caller that signs requests with a key, as AWS's SDKs do."""

    caller: Caller
    secret: str


class KeyService:
    """`file_secret`: the content of `auth.secret_file`, if set."""

    def __init__(
        self, store: Store, clock: Clock, dice: Dice, *, file_secret: bytes | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._file_secret = file_secret
        self._fingerprint = None if file_secret is None else access.fingerprint(file_secret)

    def create(
        self,
        name: str,
        *,
        roles: tuple[Role, ...],
        queues: tuple[str, ...] = ("*",),
        expires_at: int | None = None,
    ) -> Work[NewKey]:
        if not name or len(name) > 80 or not roles:
            raise InvalidRequest("a key needs a name of 1 to 80 characters and at least one role")
        now = self._clock.now()
        if expires_at is not None and expires_at <= now:
            raise InvalidRequest("expires_at must be in the future")
        key_id = self._dice.digits(_ID_DIGITS)
        secret = f"{PREFIX}_{key_id}_{self._dice.digits(_SECRET_DIGITS)}"
        key = ApiKey(
            key_id=key_id,
            name=name,
            secret_hash=access.hash_secret(secret),
            roles=roles,
            queues=access.check_patterns(queues),
            created_at=now,
            signed_with=self._fingerprint,
            expires_at=expires_at,
        )

        def do(session: Session) -> NewKey:
            session.keys.add(key)
            return NewKey(key, secret)

        return write(self._store, do)

    def all(self) -> Work[list[ApiKey]]:
        return read(self._store, lambda session: session.keys.all())

    def now(self) -> int:
        return self._clock.now()

    def note_uses(self, key_ids: Collection[str]) -> None:
        """Does not wait: nothing depends on it."""
        now = self._clock.now()

        def do(session: Session) -> None:
            for key_id in key_ids:
                session.keys.use(key_id, now=now)

        self._store.write(do)

    def signing_secret(self, key: ApiKey) -> str:
        """Raises InvalidRequest if the key was created with another secret file."""
        secret: bytes | None = self._store.secret
        if key.signed_with is not None:
            secret = self._file_secret if key.signed_with == self._fingerprint else None
        if secret is None:
            raise InvalidRequest(
                f"key {key.key_id!r} was created with another secret file than auth.secret_file; "
                "set it to the file that the key was created with, or create a new key"
            )
        return access.signing_secret(key.key_id, secret=secret)

    def revoke(self, key_id: str) -> Work[None]:
        now = self._clock.now()

        def do(session: Session) -> None:
            if not session.keys.revoke(key_id, now=now):
                raise NotFound(f"key {key_id!r} does not exist or was revoked")

        return write(self._store, do)


class _KeySnapshot:
    """The keys as of one refresh, and the callers identified with them since."""

    def __init__(self, keys: list[ApiKey], *, now: int = 0) -> None:
        self.by_id = {key.key_id: key for key in keys if key.is_usable(now=now)}
        self.callers: dict[str, Caller] = {}  # by secret
        self.signers: dict[str, Signer] = {}  # by id
        self.presented: set[str] = set()  # ids of keys behind logins

    @property
    def used(self) -> set[str]:
        """The keys that callers have presented; costs the hot path nothing."""
        now = list(self.callers.values())  # requests add callers meanwhile
        callers = {caller.key_id for caller in now if caller.key_id}
        return callers | self.signers.keys() | self.presented


class Keyring:
    """The keys that requests are checked against; a duty refreshes them every second.

    Requests read while the duty replaces the snapshot, so a request uses one snapshot throughout,
    and callers cached in an old snapshot do not get into the new one.
    """

    def __init__(self, keys: KeyService, *, required: str = "auto") -> None:
        self._keys = keys
        self._required = required
        self._unusable: set[str] = set()  # ids of keys, logged once
        self._snapshot = _KeySnapshot([])
        self.is_needed = required == "always"

    def take(self, keys: list[ApiKey]) -> None:
        now = self._keys.now()
        used, self._snapshot = self._snapshot.used, _KeySnapshot(keys, now=now)
        stale = {
            key.key_id
            for key in keys
            if key.key_id in used and (key.last_used_at or 0) <= now - _USE_EVERY_MS
        }
        if stale:
            self._keys.note_uses(stale)
        # `auto`: as soon as a key exists; revoking the last one must not open access.
        self.is_needed = self._required == "always" or (self._required == "auto" and bool(keys))

    def signer(self, key_id: str) -> Signer | None:
        """The signer with this key, if it is in use."""
        snapshot = self._snapshot
        known = snapshot.signers.get(key_id)
        if known is None and key_id in snapshot.by_id:
            key = snapshot.by_id[key_id]
            try:
                secret = self._keys.signing_secret(key)
            except InvalidRequest as error:
                if key_id not in self._unusable:
                    self._unusable.add(key_id)
                    _log.warning("a signed request is rejected: %s", error)
                return None
            known = snapshot.signers[key_id] = Signer(access.caller_of(key), secret)
        return known

    def caller_with(self, key_id: str) -> Caller | None:
        """The caller with this key, if it is in use; for callers that have authenticated before."""
        snapshot = self._snapshot
        key = snapshot.by_id.get(key_id)
        if key is None:
            return None
        snapshot.presented.add(key_id)
        return access.caller_of(key)

    def is_still_valid(self, caller: Caller) -> bool:
        """Whether the caller is still accepted; for long-lived connections such as live updates."""
        return not self.is_needed or caller.key_id in self._snapshot.by_id

    def caller(self, secret: str | None) -> Caller:
        """The caller with this secret; while no key is needed, every caller is accepted."""
        if not self.is_needed:
            return ANYONE
        if secret is None:
            raise Unauthenticated("an API key is required: send Authorization: Bearer pk_…")
        snapshot = self._snapshot
        known = snapshot.callers.get(secret)
        if known is not None:
            return known
        parts = secret.split("_")
        key = snapshot.by_id.get(parts[1]) if len(parts) == 3 else None
        if key is None or not access.matches(key, secret):
            raise Unauthenticated("this API key is unknown, revoked or expired")
        caller = access.caller_of(key)
        snapshot.callers[secret] = caller
        return caller


class OpenLogin(msgspec.Struct, frozen=True):
    caller: Caller
    token: str  # for the cookie
    page_token: str  # for the page
    until_at: int


class _CachedLogin(msgspec.Struct, frozen=True):
    found: Login | None
    until_at: int  # how long this counts


class LoginService:
    """Console logins: opens one with a key, looks it up, ends it."""

    def __init__(
        self, store: Store, keyring: Keyring, clock: Clock, dice: Dice, *, valid_ms: int
    ) -> None:
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._dice = dice
        self._valid_ms = valid_ms
        self._cached: dict[str, _CachedLogin] = {}  # by the hash of the token
        self.cookie = login.cookie_name(secret=store.secret)

    def open(self, key: str) -> Ticket[OpenLogin]:
        """Raises Unauthenticated."""
        caller = self._keyring.caller(key)
        key_id = key.split("_")[1]  # it is a known key
        token, now = self._dice.digits(_TOKEN_DIGITS), self._clock.now()
        made = Login(login.hash_token(token), key_id, now + self._valid_ms)

        def do(session: Session) -> OpenLogin:
            session.logins.prune(now=now)
            session.logins.add(made)
            return _open_login(made, token, caller)

        return self._store.write(do)

    def close(self, token: str) -> Ticket[None]:
        """End it, on this node now and on the others within `FRESH_MS`."""
        token_hash = login.hash_token(token)
        until_at = self._clock.now() + self._valid_ms  # even if a concurrent load still finds it
        self._remember(token_hash, _CachedLogin(None, until_at))
        return self._store.write(lambda session: session.logins.remove(token_hash))

    def is_fresh(self, token: str) -> bool:
        """Whether `find` can be called; otherwise load the login first."""
        if not _TOKEN.fullmatch(token):
            return True  # not a login token
        cached = self._cached.get(login.hash_token(token))
        return cached is not None and self._clock.now() < cached.until_at

    def load(self, token: str) -> Ticket[None]:
        token_hash = login.hash_token(token)

        def do(session: Session) -> None:
            found = session.logins.find(token_hash)
            now = self._clock.now()
            cached = self._cached.get(token_hash)
            if cached is None or cached.until_at <= now:
                self._remember(token_hash, _CachedLogin(found, now + FRESH_MS))

        return self._store.read(do)

    def find(self, token: str) -> OpenLogin | None:
        """The loaded login; None: it has expired, was never opened, or its key was revoked."""
        cached = self._cached.get(login.hash_token(token))
        found = None if cached is None else cached.found
        if found is None or not self._is_valid(found):
            return None
        caller = self._keyring.caller_with(found.key_id)
        return None if caller is None else _open_login(found, token, caller)

    def _is_valid(self, found: Login) -> bool:
        return login.is_valid(found, valid_ms=self._valid_ms, now=self._clock.now())

    def caller(self, token: str, page_token: str | None) -> Caller:
        """Raises Unauthenticated, also for a cookie without its page token."""
        found = self.find(token)
        if found is None:
            raise Unauthenticated("this login has expired: log in again at /console/login")
        if page_token is None or not login.is_page_token(page_token, token):
            raise Unauthenticated("a login is accepted only with its header x-csrf-token")
        return found.caller

    def _remember(self, token_hash: str, cached: _CachedLogin) -> None:
        if len(self._cached) >= _MAX_REMEMBERED:
            self._cached.clear()  # they are loaded again
        self._cached[token_hash] = cached


def _open_login(found: Login, token: str, caller: Caller) -> OpenLogin:
    return OpenLogin(caller, token, login.page_token(token), found.until_at)
