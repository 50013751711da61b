"""Load from Prometheus, or a server with its API: instant queries that return one number each.

An empty result is reported and never taken for zero: workers must not be stopped because a metric
has disappeared.
"""

from __future__ import annotations

import base64
import math
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec
from yarl import URL

from penstock.domain.errors import QueueUnknown
from penstock.domain.scaling.fleet_sources import PrometheusSource
from penstock.domain.scaling.recommendation import Sample
from penstock.outbound.http_source import HttpSource, Session
from penstock.ports.scaling import LoadSource

_MAX_CHARS = 300
_MAX = 10.0**15


class _Series(msgspec.Struct):
    value: tuple[float, str]  # the time, and the number as text


class _Data(msgspec.Struct):
    kind: str = msgspec.field(name="resultType")
    result: list[Any]


class _Answer(msgspec.Struct):
    status: Literal["success", "error"]
    data: _Data | None = None
    error: str = ""


class PrometheusLoad(LoadSource):
    def __init__(self, name: str, spec: PrometheusSource) -> None:
        """Sends nothing yet."""
        self._spec = spec
        self._http = HttpSource(name, "Prometheus", spec.endpoint, timeout_ms=spec.timeout_ms)

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        spec = self._spec

        async def query(session: Session) -> Sample:
            ready = await self._number(session, spec.ready_query, queue)
            if ready is None:
                raise QueueUnknown(
                    f"source {self._http.name}: ready_query returns nothing for queue {queue!r}"
                )
            leased = await self._number(session, spec.leased_query, queue)
            consumed = await self._number(session, spec.consume_query, queue)
            published = await self._number(session, spec.publish_query, queue)
            oldest_s = await self._number(session, spec.oldest_query, queue)
            return Sample(
                ready=math.ceil(ready),
                leased=math.ceil(leased or 0),
                consume_rate=consumed or 0.0,
                publish_rate=published or 0.0,
                oldest_ms=None if oldest_s is None else int(oldest_s * 1000),
            )

        return self._http.ask(query, self._headers())

    async def _number(self, session: Session, query: str | None, queue: str) -> float | None:
        """None: no query is set, or it returns nothing."""
        if query is None:
            return None
        named = queue.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        params = urlencode({"query": query.replace("{queue}", named)})
        url = URL(f"{self._http.endpoint}/api/v1/query?{params}", encoded=True)
        async with session.get(url, allow_redirects=False) as answer:
            body = await self._http.body(answer)
            if answer.status in (401, 403):
                raise self._http.trouble(f"it rejects the token ({answer.status})")
            if answer.status not in (200, 400, 422):  # the last two explain an invalid query
                raise self._http.trouble(f"it answered {answer.status}")
        found = self._http.decode(body, _Answer)
        if found.status == "error" or found.data is None:
            raise self._http.trouble(f"query {query!r}: {found.error[:_MAX_CHARS]}")
        return self._only(found.data, query)

    def _only(self, data: _Data, query: str) -> float | None:
        if data.kind == "scalar":
            values = [self._http.convert({"value": data.result}, _Series).value[1]]
        elif data.kind == "vector":
            values = [self._http.convert(one, _Series).value[1] for one in data.result]
        else:
            raise self._http.trouble(f"query {query!r} returns a {data.kind}, not one number")
        if not values:
            return None
        if len(values) > 1:
            raise self._http.trouble(
                f"query {query!r} returns {len(values)} series; add them up with sum(…)"
            )
        number = float(values[0])
        if not math.isfinite(number) or abs(number) > _MAX:
            raise self._http.trouble(f"query {query!r} returns {values[0]}, which is not a count")
        return number

    def _headers(self) -> dict[str, str]:
        spec = self._spec
        token = self._http.secret("token", file=spec.token_file, variable=spec.token_env)
        if token is None:
            return {}
        if spec.user is None:
            return {"Authorization": f"Bearer {token}"}
        credentials = base64.b64encode(f"{spec.user}:{token}".encode()).decode()
        return {"Authorization": f"Basic {credentials}"}
