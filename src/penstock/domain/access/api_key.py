"""API keys: who may do what on which queues.  Only a hash of a key is ever stored."""

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
    """Which queues a key must be for, beside its role, to be allowed an operation."""

    QUEUE = "queue"  # the queue that the path names, or the one behind a protocol
    NAMED = "named"  # the queue that the request names in any other way, or that a thing is of
    FILTERED = "filtered"  # any: the answer covers the queues of the key, and no others
    NONE = "none"  # it concerns no queue
    ALL = "all"  # all queues: a key that is for some queues is refused


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    key_id: str
    name: str
    secret_hash: str
    roles: tuple[Role, ...]
    queues: tuple[str, ...] = ("*",)  # shell-style patterns
    created_at: int
    revoked_at: int | None = None
    signed_with: str | None = None  # fingerprint of a secret file; None: with the store's secret


class Caller(msgspec.Struct, frozen=True):
    """Who asks.  Without keys configured, everybody on this machine is `ANYONE`."""

    name: str
    roles: frozenset[Role]
    queues: tuple[str, ...] = ("*",)
    key_id: str | None = None  # of the key that was shown


ANYONE = Caller("anyone", frozenset(Role))


def hash_secret(secret: str) -> str:
    # Secrets are 160 random bits, so one fast hash is enough: there is nothing to guess.
    return hashlib.sha256(secret.encode()).hexdigest()


def signing_secret(key_id: str, *, secret: bytes) -> str:
    """For protocols that sign requests instead of showing the key.

    To check a signature takes the secret itself, and of a key's own only a hash is kept; so this
    one is derived whenever it is needed, and stored nowhere.  `secret`: that of the secret file, or
    that of the store, which a reader of the database knows.
    """
    mac = hmac.digest(secret, f"signing {key_id}".encode(), "sha256")
    return base64.urlsafe_b64encode(mac[:30]).decode()  # also fits into a URL


def fingerprint(secret: bytes) -> str:
    """Names a secret file without telling its contents."""
    return hashlib.sha256(b"penstock secret file " + secret).hexdigest()[:16]


def matches(key: ApiKey, secret: str) -> bool:
    return key.revoked_at is None and hmac.compare_digest(key.secret_hash, hash_secret(secret))


def caller_of(key: ApiKey) -> Caller:
    return Caller(key.name, frozenset(key.roles), key.queues, key.key_id)


def allow(caller: Caller, role: Role, queue: str | None = None) -> None:
    """Return, or raise Forbidden.  Whoever may operate may also read."""
    may = role in caller.roles or (role is Role.READ and Role.OPERATE in caller.roles)
    if not may:
        raise Forbidden(f"this key lacks the role {role.value!r}")
    if queue is not None and not sees(caller, queue):
        raise Forbidden(f"this key is not for queue {queue!r}")


def allow_everywhere(caller: Caller) -> None:
    """For what concerns all queues.  Raises Forbidden for a key that is for some of them only."""
    if is_limited(caller):
        raise Forbidden("this key is for some queues only, and this concerns them all")


def is_limited(caller: Caller) -> bool:
    """Is the caller's key for some queues only?"""
    return "*" not in caller.queues


def sees(caller: Caller, queue: str) -> bool:
    return any(pattern == "*" or fnmatchcase(queue, pattern) for pattern in caller.queues)


def check_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if not patterns or any(not _PATTERN.fullmatch(pattern) for pattern in patterns):
        raise InvalidRequest("a queue pattern has 1 to 80 characters, none of them white space")
    return patterns
