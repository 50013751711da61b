"""Queue settings as programs write them, and which of an application's are applied."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Required, TypedDict

import msgspec

from penstock.api import queues
from penstock.client.backend import Backend
from penstock.client.channel import Ask, Flow, run, run_async
from penstock.client.jobs.job import Job
from penstock.client.jobs.options import BackoffLike, backoff_of
from penstock.domain.duration import Duration, as_ms, duration_text
from penstock.domain.errors import Forbidden, InvalidRequest, QueueExists
from penstock.domain.queue.queue import (
    DedupScope,
    Ordering,
    QueueSettings,
    Redelivery,
    check_name,
    check_settings,
)
from penstock.domain.queue.rate import Rate


class RateOptions(TypedDict, total=False):
    """At most `limit` messages per period `per`, of which `burst` may come at once."""

    limit: Required[int]
    per: Duration  # default: a second
    burst: int  # default: one


RateLike = Rate | RateOptions | str  # "100/1m", or "100/1m,10" with a burst of 10


class QueueOptions(TypedDict, total=False):
    """Like `QueueSettings`, but fields that end in `_ms` there are durations here."""

    lease: Duration
    delay: Duration
    retention: Duration | None
    max_attempts: int | None
    dead_letter_queue: str | None
    ordering: Ordering | str
    redelivery: Redelivery | str
    backoff: BackoffLike
    max_body_bytes: int | None
    max_messages: int | None
    dedup_window: Duration
    dedup_by_content: bool
    dedup_scope: DedupScope | str
    wait: Duration | None
    labels: dict[str, str]
    annotations: dict[str, str]
    max_crashes: int | None
    max_leased: int | None
    max_leased_per_group: int | None
    rate: RateLike | None
    rate_per_group: RateLike | None
    is_fair: bool
    weights: dict[str, int]


def settings_of(name: str, given: QueueOptions) -> dict[str, Any]:
    """Convert to plain values in the form of `QueueSettings`; raises InvalidRequest."""
    known = QueueSettings.__struct_fields__
    plain: dict[str, Any] = {}
    for option, value in given.items():
        if f"{option}_ms" in known:
            plain[f"{option}_ms"] = None if value is None else as_ms(option, value)
        elif option == "backoff":
            plain[option] = backoff_of(value)  # type: ignore[arg-type]
        elif option in ("rate", "rate_per_group"):
            plain[option] = _rate_of(option, value)
        elif option in known:
            plain[option] = value
        else:
            raise InvalidRequest(f"queue {name!r}: there is no setting {option!r}")
    plain = msgspec.to_builtins(plain)
    try:
        check_settings(msgspec.convert(plain, QueueSettings), name=name)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"queue {name!r}: {error}") from None
    return plain


def _rate_of(name: str, given: object) -> object:
    """Convert to the form of `Rate`; raises InvalidRequest."""
    if isinstance(given, str):
        pace, comma, burst = given.partition(",")
        limit, slash, per = pace.partition("/")
        if not slash or not limit.strip().isdecimal() or (comma and not burst.strip().isdecimal()):
            raise InvalidRequest(f"{name} is {given!r}: use a rate such as '100/1m' or '100/1m,10'")
        rate: dict[str, object] = {"limit": int(limit), "per_ms": as_ms(f"{name}.per", per)}
        return rate | ({"burst": int(burst)} if comma else {})
    if isinstance(given, Mapping) and "per" in given:
        kept = {key: value for key, value in given.items() if key != "per"}
        return kept | {"per_ms": as_ms(f"{name}.per", given["per"])}
    return given


_log = logging.getLogger("penstock.client")


class DeclaredQueues:
    """Safe to share between threads: applying a declaration twice is harmless."""

    def __init__(self) -> None:
        self._settings: dict[str, dict[str, Any]] = {}
        self._applied: tuple[Backend | None, set[str]] = (None, set())

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __contains__(self, queue: str) -> bool:
        return queue in self._settings

    @property
    def dead_letter_queues(self) -> set[str]:
        """The queues that other declared queues name as theirs."""
        return {named for one in self._settings.values() if (named := one.get("dead_letter_queue"))}

    def of(self, queue: str) -> Mapping[str, Any]:
        return self._settings.get(queue, {})

    def add(self, queue: str, settings: Mapping[str, Any]) -> None:
        self._settings.setdefault(check_name(queue), {}).update(settings)

    def raise_attempts(self, queue: str, max_attempts: int) -> None:
        """Raise the queue's declared or default attempt limit; never lowers it."""
        settings = self._settings.setdefault(check_name(queue), {})
        limit = settings.get("max_attempts", QueueSettings().max_attempts)
        if limit is not None and limit < max_attempts:
            settings["max_attempts"] = max_attempts

    def add_window(self, job: Job[..., Any]) -> None:
        """Add a unique job's dedup window; raises InvalidRequest if its queue has another one."""
        window_ms = None if job.unique is None else job.unique.window_ms
        if window_ms is None:
            return
        settings = self._settings.setdefault(job.queue, {})
        if settings.setdefault("dedup_window_ms", window_ms) != window_ms:
            raise InvalidRequest(
                f"queue {job.queue!r} has the dedup_window "
                f"{duration_text(settings['dedup_window_ms'])}, not that of job {job.kind!r}: "
                "use another queue"
            )

    def apply(self, backend: Backend, queue: str) -> None:
        """Create the queue or change its settings, once per backend."""
        applied = self._queues_applied(backend)
        if queue not in applied:
            settings = self.checked(backend, queue)
            run(backend.channel, _declare(queue, settings))
            applied.add(queue)

    async def apply_async(self, backend: Backend, queue: str) -> None:
        applied = self._queues_applied(backend)
        if queue not in applied:
            settings = self.checked(backend, queue)
            await run_async(backend.channel, _declare(queue, settings))
            applied.add(queue)

    def checked(self, backend: Backend, queue: str) -> Mapping[str, Any]:
        """The declared settings; raises InvalidRequest if the store's limits override them."""
        settings = self.of(queue)
        size, limits = settings.get("max_body_bytes"), backend.limits
        if size is not None and limits is not None and size > limits.max_body_bytes:
            raise InvalidRequest(
                f"queue {queue!r}: max_body_bytes is {size}, but the store takes at most "
                f"{limits.max_body_bytes}: raise limits.max_body_bytes with "
                "Penstock(url, settings={…}), PENSTOCK_LIMITS_MAX_BODY_BYTES or the config file"
            )
        return settings

    def _queues_applied(self, backend: Backend) -> set[str]:
        known, names = self._applied
        if known is not backend:
            names = set()
            self._applied = (backend, names)
        return names


def _declare(queue: str, settings: Mapping[str, Any]) -> Flow[None]:
    path = {"queue": queue}
    try:
        try:
            yield Ask(queues.PUT, path, settings, only_new=True)
        except QueueExists:
            if settings:
                yield Ask(queues.CHANGE, path, settings)
    except Forbidden as error:
        _log.warning("queue %r keeps its settings: %s", queue, error)
