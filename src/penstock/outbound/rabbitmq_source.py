"""Load and pressure from RabbitMQ's management API.

Missing figures are reported and never taken for zero: right after its start, a broker does not know
its counts yet.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from yarl import URL

from penstock.domain.errors import QueueUnknown, SourceUnavailable
from penstock.domain.scaling.fleet_sources import RabbitSource as Spec
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Sample, Staged
from penstock.outbound.http_source import HttpSource, Session
from penstock.ports.scaling import LoadSource

T = TypeVar("T")

PAGE = 100  # queues in one request, as in autoscale-workload-rabbit
_MAX_PAGES = 1_000
_MB = 1024 * 1024
_GUEST = "guest"  # RabbitMQ's default password
# Includes the name: RabbitMQ returns an empty list if no requested column has a value.
_LOAD = (
    "name,messages_ready,messages_unacknowledged,"
    "message_stats.deliver_get_details.rate,message_stats.publish_details.rate"
)
_STAGED = "name,messages_ready,message_stats.publish_details.rate"


class _Rate(msgspec.Struct):
    rate: float = 0.0


class _Stats(msgspec.Struct):
    deliver_get_details: _Rate = msgspec.field(default_factory=_Rate)
    publish_details: _Rate = msgspec.field(default_factory=_Rate)


class _Queue(msgspec.Struct):
    name: str = ""
    messages_ready: int | None = None
    messages_unacknowledged: int = 0
    message_stats: _Stats | list[Any] | None = None  # an empty list where there are none

    @property
    def rates(self) -> _Stats:
        return self.message_stats if isinstance(self.message_stats, _Stats) else _Stats()


class _Page(msgspec.Struct):
    items: list[_Queue]
    page_count: int = 1


class _Node(msgspec.Struct):
    """A node that is down has only a name; a figure that is not monitored is text, not a number."""

    running: bool = False
    mem_used: int | str | None = None
    mem_limit: int | str | None = None
    disk_free: int | str | None = None


class RabbitLoad(LoadSource):
    def __init__(self, name: str, spec: Spec) -> None:
        """`name` appears in error messages.  Sends nothing yet."""
        self._spec = spec
        self._http = HttpSource(name, "RabbitMQ", spec.endpoint, timeout_ms=spec.timeout_ms)
        self._vhost = quote(spec.vhost, safe="")
        self._pressure: Pressure | SourceUnavailable | None = None
        self._pressure_at: int | None = None
        self._lock = threading.Lock()

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        return self._query(lambda s: self._sample(s, queue, staging_indicator))

    def pressure(self, *, now: int) -> Pressure | None:
        """Cached for a while: many fleets share one source."""
        with self._lock:
            last = self._pressure_at
            if last is None or now - last >= self._spec.pressure_every_ms:
                self._pressure, self._pressure_at = self._read_pressure(), now
            known = self._pressure
        if isinstance(known, SourceUnavailable):
            raise known
        return known

    def _read_pressure(self) -> Pressure | SourceUnavailable | None:
        try:
            return pressure_of(self._query(lambda s: self._get(s, "nodes", {}, list[_Node])))
        except SourceUnavailable as error:
            return error

    async def _sample(self, session: Session, queue: str, indicator: str | None) -> Sample:
        path = f"queues/{self._vhost}/{quote(queue, safe='')}"
        found = await self._get(session, path, {"columns": _LOAD}, _Queue, missing=queue)
        staged = () if indicator is None else await self._read_staged(session, queue, indicator)
        return Sample(
            ready=self._require_count(found.messages_ready, queue),
            leased=found.messages_unacknowledged,
            consume_rate=found.rates.deliver_get_details.rate,
            publish_rate=found.rates.publish_details.rate,
            staged=staged,
        )

    async def _read_staged(
        self, session: Session, queue: str, indicator: str
    ) -> tuple[Staged, ...]:
        # autoscale-workload-rabbit does not escape names, so that a dot matches any character.
        params: dict[str, str | int] = {
            "name": f"^{re.escape(queue + indicator)}.+$",
            "use_regex": "true",
            "page_size": PAGE,
            "columns": _STAGED,
        }
        found: list[_Queue] = []
        for number in range(1, _MAX_PAGES + 1):
            path = f"queues/{self._vhost}"
            page = await self._get(session, path, params | {"page": number}, _Page, missing=queue)
            found += page.items
            if number >= page.page_count:
                break
        return tuple(
            Staged(one.name, one.messages_ready or 0, one.rates.publish_details.rate)
            for one in found
        )

    def _require_count(self, ready: int | None, queue: str) -> int:
        if ready is None:
            raise self._http.trouble(f"it has no figures for queue {queue!r} yet")
        return ready

    def _query(self, query: Callable[[Session], Awaitable[T]]) -> T:
        spec = self._spec
        found = self._http.secret("password", file=spec.password_file, variable=spec.password_env)
        credentials = f"{spec.user}:{_GUEST if found is None else found}"
        encoded = base64.b64encode(credentials.encode()).decode()
        return self._http.ask(query, {"Authorization": f"Basic {encoded}"})

    async def _get(
        self,
        session: Session,
        path: str,
        params: Mapping[str, str | int],
        kind: type[T],
        *,
        missing: str = "",
    ) -> T:
        url = URL(f"{self._http.endpoint}/api/{path}?{urlencode(params)}", encoded=True)
        async with session.get(url, allow_redirects=False) as answer:
            if answer.status == 404 and missing:
                raise QueueUnknown(
                    f"source {self._http.name}: RabbitMQ has no queue {missing!r} "
                    f"in the virtual host {self._spec.vhost!r}"
                )
            if answer.status in (401, 403):
                raise self._http.trouble(f"it rejects user {self._spec.user!r} ({answer.status})")
            if answer.status != 200:
                raise self._http.trouble(f"it answered {answer.status}")
            return self._http.decode(await self._http.body(answer), kind)


def pressure_of(nodes: list[_Node]) -> Pressure | None:
    """The highest memory use and the least free disk space of all running nodes."""
    used = [
        node.mem_used / node.mem_limit * 100
        for node in nodes
        if node.running and isinstance(node.mem_used, int)
        if isinstance(node.mem_limit, int) and node.mem_limit > 0
    ]
    free = [
        node.disk_free // _MB for node in nodes if node.running and isinstance(node.disk_free, int)
    ]
    if not used and not free:
        return None
    return Pressure(memory_percent=max(used, default=None), disk_free_mb=min(free, default=None))
