"""Recurring work of a server elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TypedDict, Unpack
from urllib.parse import quote

import msgspec

from penstock.client.remote.answers import Recurring
from penstock.client.remote.transport import Transport
from penstock.domain.queue.queue import DedupUntil
from penstock.domain.schedule.schedule import CatchUp, Overlap


class RecurringOptions(TypedDict, total=False):
    """When it is sent, and what; `cron` or `every_ms` must be there."""

    cron: str | None
    zone: str
    every_ms: int | None
    body: Any
    kind: str | None
    entity_id: str | None
    tags: tuple[str, ...]
    group: str | None
    priority: int
    attributes: dict[str, str]
    max_attempts: int | None
    expires_in_ms: int | None
    timeout_ms: int | None
    retries_timeouts: bool
    route: str | None
    dedup_key: str | None
    dedup_until: DedupUntil | None
    catch_up: CatchUp
    overlap: Overlap
    owner: str | None


class _Page(msgspec.Struct):
    recurring: list[Recurring]
    next: str | None


class _Instants(msgspec.Struct):
    instants: list[datetime]


class _Run(msgspec.Struct):
    id: str


class _Retired(msgspec.Struct):
    retired: list[str]


_one = msgspec.json.Decoder(Recurring)
_page = msgspec.json.Decoder(_Page)
_instants = msgspec.json.Decoder(_Instants)
_run = msgspec.json.Decoder(_Run)
_retired = msgspec.json.Decoder(_Retired)


Instants = list[datetime]  # inside the class `list` is a method
Names = list[str]


class RemoteRecurring:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def put(self, name: str, queue: str, **options: Unpack[RecurringOptions]) -> Recurring:
        """Make it or change it; the same again changes nothing."""
        given = {key: value for key, value in options.items() if value is not None}
        body = {"queue": queue, **given}
        answer = self._transport.call("PUT", _path(name), body=body, is_safe=True)
        return _one.decode(answer.body)

    def list(self) -> Iterator[Recurring]:
        """All of it, page by page, by name."""
        after: str | None = ""
        while after is not None:
            path = f"/v1/recurring?cursor={quote(after, safe='')}"
            page = _page.decode(self._transport.call("GET", path).body)
            yield from page.recurring
            after = page.next

    def get(self, name: str) -> Recurring:
        return _one.decode(self._transport.call("GET", _path(name)).body)

    def remove(self, name: str) -> None:
        self._transport.call("DELETE", _path(name))

    def retire(self, owner: str, declared: Iterable[str]) -> Names:
        """Remove what this application declared before and does not declare now; their names."""
        body = {"owner": owner, "declared": sorted(declared)}
        answer = self._transport.call("POST", "/v1/recurring/retire", body=body, is_safe=True)
        return _retired.decode(answer.body).retired

    def pause(self, name: str) -> Recurring:
        return _one.decode(self._transport.call("POST", f"{_path(name)}/pause").body)

    def resume(self, name: str) -> Recurring:
        return _one.decode(self._transport.call("POST", f"{_path(name)}/resume").body)

    def run(self, name: str) -> str:
        """Send it once now; the message's id."""
        return _run.decode(self._transport.call("POST", f"{_path(name)}/run").body).id

    def preview(self, name: str, *, count: int = 10) -> Instants:
        path = f"{_path(name)}/preview?count={count}"
        return _instants.decode(self._transport.call("GET", path).body).instants

    def preview_rhythm(
        self,
        *,
        cron: str | None = None,
        zone: str = "UTC",
        every_ms: int | None = None,
        count: int = 10,
    ) -> Instants:
        """The next instants of a rhythm, before it is used."""
        body = {"cron": cron, "zone": zone, "every_ms": every_ms, "count": count}
        answer = self._transport.call("POST", "/v1/recurring/preview", body=body, is_safe=True)
        return _instants.decode(answer.body).instants


def _path(name: str) -> str:
    return f"/v1/recurring/{quote(name, safe='')}"
