"""Load of lists and streams in Redis, or in a server that speaks its protocol.

Lists are read as Celery (kombu) fills them: one list per priority step, and one hash for all queues
of the messages that workers hold.  Lists report neither rates nor ages.  A stream's consumer group
reports how many messages were not delivered yet and how many are pending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from penstock.domain.errors import FleetsRefused, QueueUnknown, SourceUnavailable
from penstock.domain.optional_parts import not_installed
from penstock.domain.scaling.counter_rates import CounterReading, measure
from penstock.domain.scaling.fleet_sources import RedisSource
from penstock.domain.scaling.recommendation import Sample
from penstock.outbound.http_source import read_secret
from penstock.ports.scaling import LoadSource

T = TypeVar("T")

_SEPARATOR = "\x06\x16"  # kombu's, between a queue's name and its priority step
_CELERYS_LEASED = "unacked"
_MAX_COUNTED = 1_000


class RedisLoad(LoadSource):
    def __init__(self, name: str, spec: RedisSource) -> None:
        """Sends nothing yet; raises FleetsRefused if the library is not installed."""
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise FleetsRefused(
                f"sources.{name}: {not_installed('Redis support', 'redis')}"
            ) from error
        self._redis: Any = redis
        self._retry: Any = Retry(NoBackoff(), 0)
        self._name = name
        self._spec = spec
        self._last: dict[str, CounterReading] = {}  # by stream
        self._lock = threading.Lock()

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        if self._spec.type == "list":
            return self._query(lambda client: self._list(client, queue))
        return self._query(lambda client: self._stream(client, queue, now))

    def _list(self, client: Any, queue: str) -> Sample:
        spec, pipeline = self._spec, client.pipeline(transaction=False)
        for step in spec.priority_steps or (0,):
            pipeline.llen(f"{queue}{_SEPARATOR}{step}" if step else queue)
        leased_key = _CELERYS_LEASED if spec.leased_key is None else spec.leased_key
        if leased_key:
            pipeline.hlen(leased_key)
        lengths: list[int] = pipeline.execute()
        leased = lengths.pop() if leased_key else 0
        return Sample(ready=sum(lengths), leased=leased)

    def _stream(self, client: Any, queue: str, now: int) -> Sample:
        group = self._group(client, queue)
        after = str(group["last-delivered-id"])
        first = client.xrange(queue, min=f"({after}", count=1)
        ready = group.get("lag")
        if ready is None:  # an older server, or entries were deleted: count up to a limit
            ready = len(client.xrange(queue, min=f"({after}", count=_MAX_COUNTED))
        stream = client.xinfo_stream(queue)
        rates = self._rates(queue, group.get("entries-read"), stream.get("entries-added"), now)
        return Sample(
            ready=int(ready),
            leased=int(group["pending"]),
            consume_rate=rates.consume_rate,
            publish_rate=rates.publish_rate,
            oldest_ms=max(now - int(first[0][0].partition("-")[0]), 0) if first else None,
        )

    def _group(self, client: Any, queue: str) -> Mapping[str, Any]:
        try:
            groups = client.xinfo_groups(queue)
        except self._redis.ResponseError as error:
            if "no such key" in str(error):
                raise QueueUnknown(f"{self._where()} has no stream {queue!r}") from None
            raise
        for group in groups:
            if group["name"] == self._spec.group:
                return dict(group)
        raise QueueUnknown(f"{self._where()}: stream {queue!r} has no group {self._spec.group!r}")

    def _rates(self, queue: str, read: int | None, added: int | None, now: int) -> CounterReading:
        with self._lock:
            found = measure(
                self._last.get(queue),
                (read is None, added is None),  # compare only while the same figures are known
                consumed=read or 0,
                sent=added or 0,
                now=now,
            )
            self._last[queue] = found
        return found

    def _query(self, query: Callable[[Any], T]) -> T:
        spec, seconds = self._spec, self._spec.timeout_ms / 1000
        password = read_secret(
            "password",
            file=spec.password_file,
            variable=spec.password_env,
            trouble=self._trouble,
        )
        try:
            with self._redis.Redis.from_url(
                spec.url,
                username=spec.user,
                password=password,
                socket_timeout=seconds,
                socket_connect_timeout=seconds,
                decode_responses=True,
                retry=self._retry,
            ) as client:
                return query(client)
        except self._redis.RedisError as error:
            raise self._trouble(str(error) or type(error).__name__) from error
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise self._trouble(f"{type(error).__name__}: {error}") from error

    def _trouble(self, why: str) -> SourceUnavailable:
        return SourceUnavailable(f"{self._where()}: {why}")

    def _where(self) -> str:
        where = urlsplit(self._spec.url)
        return f"source {self._name}, Redis at {where.hostname}:{where.port or 6379}"
