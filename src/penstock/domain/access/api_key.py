"""API keys: which operations on which queues they allow.  Only a hash of a key is stored."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from penstock.domain.errors import Forbidden, InvalidRequest

_PATTERN = re.compile(r"[^\s\x00]{1,80}")


class Role(StrEnum):
    PRODUCE = "produce"
    CONSUME = "consume"
    OPERATE = "operate"
    READ = "read"


class Scope(StrEnum):
    """Which queues a key must cover, besides having the role, for an operation."""

    QUEUE = "queue"  # the queue in the path, or the one behind a protocol
    NAMED = "named"  # a queue that the request or the addressed object names in another way
    FILTERED = "filtered"  # any: the answer covers only the queues of the key
    NONE = "none"  # the operation does not concern queues
    ALL = "all"  # all queues: a key that is limited to some queues is refused


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    key_id: str
    name: str
    secret_hash: str
    roles: tuple[Role, ...]
    queues: tuple[str, ...] = ("*",)  # shell-style patterns
    created_at: int
    revoked_at: int | None = None
    signed_with: str | None = None  # fingerprint of a secret file; None: the store's own secret
    expires_at: int | None = None
    last_used_at: int | None = None  # to within a few minutes

    def is_usable(self, *, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Caller(msgspec.Struct, frozen=True):
    """The caller of an operation.  If no keys are configured, every local caller is `ANYONE`."""

    name: str
    roles: frozenset[Role]
    queues: tuple[str, ...] = ("*",)
    key_id: str | None = None  # the key that the caller presented
    expires_at: int | None = None  # when that key expires


ANYONE = Caller("anyone", frozenset(Role))


def hash_secret(secret: str) -> str:
    # Secrets are 160 random bits, so one fast hash is enough.
    return hashlib.sha256(secret.encode()).hexdigest()


def signing_secret(key_id: str, *, secret: bytes) -> str:
    """Derive the secret for protocols that sign requests instead of sending the key.

    Verifying a signature takes the secret itself, but only a hash of the key is stored.  So this
    secret is derived when needed and never stored.  `secret` comes from the secret file, or else
    from the store, where any reader of the database can see it.
    """
    mac = hmac.digest(secret, f"signing {key_id}".encode(), "sha256")
    return base64.urlsafe_b64encode(mac[:30]).decode()  # safe in URLs, too


def fingerprint(secret: bytes) -> str:
    """Identify a secret file without revealing its contents."""
    return hashlib.sha256(b"penstock secret file " + secret).hexdigest()[:16]


def matches(key: ApiKey, secret: str) -> bool:
    return key.revoked_at is None and hmac.compare_digest(key.secret_hash, hash_secret(secret))


def caller_of(key: ApiKey) -> Caller:
    return Caller(key.name, frozenset(key.roles), key.queues, key.key_id, key.expires_at)


def allow(caller: Caller, role: Role, queue: str | None = None) -> None:
    """Raise Forbidden unless the caller has the role.  Operators may also read."""
    may = role in caller.roles or (role is Role.READ and Role.OPERATE in caller.roles)
    if not may:
        raise Forbidden(f"this key lacks the role {role.value!r}")
    if queue is not None and not sees(caller, queue):
        raise Forbidden(f"this key is not for queue {queue!r}")


def allow_expiry(caller: Caller, expires_at: int | None) -> None:
    """Raise Forbidden for a key that would outlive the caller's own."""
    if caller.expires_at is not None and (expires_at is None or expires_at > caller.expires_at):
        raise Forbidden(
            "a new key cannot be valid for longer than the key that creates it: "
            f"give an expires_at of at most {caller.expires_at}"
        )


def allow_everywhere(caller: Caller) -> None:
    """Raise Forbidden unless the caller's key covers all queues."""
    if is_limited(caller):
        raise Forbidden("this operation concerns all queues, and this key is limited to some")


def is_limited(caller: Caller) -> bool:
    """Whether the caller's key is limited to some queues."""
    return "*" not in caller.queues


def sees(caller: Caller, queue: str) -> bool:
    return any(pattern == "*" or fnmatchcase(queue, pattern) for pattern in caller.queues)


def check_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if not patterns or any(not _PATTERN.fullmatch(pattern) for pattern in patterns):
        raise InvalidRequest("a queue pattern has 1 to 80 characters, none of them white space")
    return patterns
