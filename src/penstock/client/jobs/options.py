"""Options for enqueuing a job."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import NoneType
from typing import Any, TypedDict

import msgspec
from msgspec.structs import replace

from penstock.client.jobs import tracing
from penstock.domain.datetimes import instant_of
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.domain.message.retry import Backoff, Exponential, Fixed, Listed, check
from penstock.domain.queue.queue import DedupUntil

BackoffLike = Backoff | Duration | Sequence[Duration]


class Unique(msgspec.Struct, frozen=True, kw_only=True):
    """One job at a time of the same kind and arguments: enqueuing a second returns the first.

    `by`: the arguments to compare, None for all.  `until`: the first has "ended" or was "claimed",
    or a duration, which becomes the `dedup_window` of the job's queue.
    """

    by: tuple[str, ...] | None = None
    until: Duration = "ended"

    @property
    def dedup_until(self) -> DedupUntil:
        if self.until == "ended":
            return DedupUntil.ENDED
        return DedupUntil.CLAIMED if self.until == "claimed" else DedupUntil.WINDOW

    @property
    def window_ms(self) -> int | None:
        is_window = self.dedup_until is DedupUntil.WINDOW
        return as_ms("until", self.until) if is_window else None


class JobOptions(TypedDict, total=False):
    """The keyword arguments of `using` and `Penstock.enqueue`."""

    queue: str
    priority: int  # smaller goes first
    delay: Duration
    due_at: datetime
    group: str | None
    tags: Sequence[str]  # at most two
    entity_id: str | None
    dedup_key: str | None
    expires_in: Duration
    expires_at: datetime
    attempts: int | None
    timeout: Duration | None
    route: str | None
    attributes: dict[str, str]
    trace: str | None  # W3C traceparent; default: that of the current span, if there is one
    tx: object  # the caller's own transaction


_TEXT = ((str, NoneType), "a text")
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "queue": ((str,), "the name of a queue"),
    "priority": ((int,), "a whole number; smaller goes first"),
    "attempts": ((int, NoneType), "a whole number"),
    "group": _TEXT,
    "entity_id": _TEXT,
    "dedup_key": _TEXT,
    "route": _TEXT,
    "trace": _TEXT,
    "attributes": ((dict,), "a dict of strings"),
}


class ResolvedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Checked options: a queue, and a draft that lacks only kind and body."""

    queue: str = "default"
    draft: Draft = Draft(body="null")
    tx: object = None

    def merged(self, given: JobOptions) -> ResolvedOptions:
        """Return a copy with these options replaced; raises InvalidRequest."""
        unknown = given.keys() - JobOptions.__annotations__.keys()
        if unknown:
            raise InvalidRequest(f"there is no option {', '.join(sorted(unknown))}")
        for name, (types, form) in _TYPES.items():
            if name in given:
                _check_type(name, given[name], types, form)  # type: ignore[literal-required]
        for pair in (("delay", "due_at"), ("expires_in", "expires_at")):
            if given.keys() >= set(pair):
                raise InvalidRequest(f"give {pair[0]} or {pair[1]}, not both")
        queue, tx = given.get("queue", self.queue), given.get("tx", self.tx)
        return ResolvedOptions(queue=queue, tx=tx, draft=replace(self.draft, **_fields(given)))


def _check_type(name: str, value: object, types: tuple[type, ...], form: str) -> None:
    if not isinstance(value, types) or isinstance(value, bool):
        raise InvalidRequest(f"{name} takes {form}, not {value!r}")
    if isinstance(value, dict) and not all(
        isinstance(text, str) for p in value.items() for text in p
    ):
        raise InvalidRequest(f"{name} takes {form}, not {value!r}")


def _fields(given: JobOptions) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: given[name]
        for name in ("priority", "group", "entity_id", "dedup_key", "route", "attributes")
        if name in given
    }
    if "tags" in given:
        fields["tags"] = texts("tags", given["tags"])
    if "trace" in given:
        fields["trace"] = None if given["trace"] is None else tracing.check(given["trace"])
    if "attempts" in given:
        fields["max_attempts"] = given["attempts"]
    if "timeout" in given:
        timeout = given["timeout"]
        fields["timeout_ms"] = None if timeout is None else as_ms("timeout", timeout)
    # The last one given counts: a duration and an instant replace each other.
    if "delay" in given:
        fields |= {"delay_ms": as_ms("delay", given["delay"]), "due_at": None}
    if "due_at" in given:
        fields |= {"due_at": instant("due_at", given["due_at"]), "delay_ms": None}
    if "expires_in" in given:
        in_ms = as_ms("expires_in", given["expires_in"])
        fields |= {"expires_in_ms": in_ms, "expires_at": None}
    if "expires_at" in given:
        at = instant("expires_at", given["expires_at"])
        fields |= {"expires_at": at, "expires_in_ms": None}
    return fields


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return a sequence of strings as a tuple; raises InvalidRequest."""
    if not isinstance(value, str) and isinstance(value, Iterable):
        found = tuple(value)
        if all(isinstance(text, str) for text in found):
            return found
    raise InvalidRequest(f"{name} takes a sequence of strings, not {value!r}")


def instant(name: str, value: object) -> int:
    """Convert to milliseconds since the epoch; raises InvalidRequest."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidRequest(f"{name} takes a datetime with a time zone, not {value!r}")
    return instant_of(value)


def backoff_of(given: BackoffLike | None) -> Backoff | None:
    """ "10s": always the same delay; ["1s", "1m"]: one after another, then the last again."""
    match given:
        case None:
            return None
        case Fixed() | Listed() | Exponential():
            return check(given)
        case str() | timedelta():
            return check(Fixed(as_ms("backoff", given)))
        case [*delays]:
            return check(Listed(tuple(as_ms("backoff", delay) for delay in delays)))
    raise InvalidRequest(f"backoff is '10s', ['1s', '1m'] or Exponential(…), not {given!r}")


def unique_of(given: bool | Unique, names: Sequence[str], kind: str) -> Unique | None:
    unique = Unique() if given is True else given
    if not unique:
        return None
    if isinstance(unique.by, str):
        raise InvalidRequest("unique by takes a tuple of parameters, not one text")
    unique.window_ms  # noqa: B018 (raises for an invalid duration)
    unknown = set(unique.by or ()) - set(names)
    if unknown:
        raise InvalidRequest(f"job {kind!r} has no parameter {', '.join(sorted(unknown))}")
    return unique


def key_of(kind: str, canonical: bytes) -> str:
    """A dedup key: short for any arguments, and recognisable by its kind."""
    return f"{kind[:100]}:{hashlib.sha256(kind.encode() + canonical).hexdigest()}"
