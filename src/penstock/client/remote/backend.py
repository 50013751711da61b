"""A server elsewhere behind an application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.api import sends
from penstock.api.sends import SendResult
from penstock.client.channel import Channel
from penstock.client.errors import no_transaction
from penstock.client.remote.server import Remote
from penstock.client.remote.source import RemoteSource
from penstock.client.worker.roll import RemoteRoll
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import Forbidden, InvalidRequest, QueueExists, QueueNotFound
from penstock.domain.message.draft import Draft
from penstock.domain.worker import NewWorker
from penstock.ports.clock import Clock
from penstock.ports.work import WorkAct, WorkSource
from penstock.worker.registration import Roll

_log = logging.getLogger("penstock.client")


class OverHttp:
    def __init__(self, url: str, *, key: str | None, clock: Clock) -> None:
        self.remote = Remote(url, key=key)
        self.channel: Channel = self.remote.channel
        self.clock = clock
        self._source: RemoteSource | None = None

    def send(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]:
        wanted = [to_wire(draft) for draft in drafts]
        try:
            return self._send(queue, wanted)
        except QueueNotFound:
            self._make(queue)
            return self._send(queue, wanted)

    async def send_async(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]:
        return await asyncio.to_thread(self.send, queue, drafts)

    def send_in(
        self, tx: object, queue: str, drafts: Sequence[Draft], settings: Mapping[str, Any]
    ) -> list[SendResult]:
        raise no_transaction()

    async def send_in_async(
        self, tx: object, queue: str, drafts: Sequence[Draft], settings: Mapping[str, Any]
    ) -> list[SendResult]:
        raise no_transaction()

    def act_in(self, tx: object, act: WorkAct) -> None:
        raise no_transaction()

    async def act_in_async(self, tx: object, act: WorkAct) -> None:
        raise no_transaction()

    def declare(self, queue: str, settings: Mapping[str, Any]) -> None:
        try:
            try:
                self.remote.queues.put(queue, settings, only_new=True)
            except QueueExists:
                if settings:
                    self.remote.queues.patch(queue, settings)
        except Forbidden as error:
            _log.warning("queue %r keeps the settings it has: %s", queue, error)

    async def declare_async(self, queue: str, settings: Mapping[str, Any]) -> None:
        await asyncio.to_thread(self.declare, queue, settings)

    def queue_names(self, *, prefix: str, limit: int) -> list[str]:
        return [queue.name for queue in self.remote.queues.page(prefix=prefix, limit=limit).queues]

    def change_breaker(self, changes: Mapping[str, Any], route: str | None) -> BreakerSettings:
        if route is None:
            return self.remote.circuits.change_settings(changes)
        return self.remote.circuits.change_own_settings(changes, route=route).settings

    def source(self) -> WorkSource:
        if self._source is None:
            self._source = RemoteSource(self.remote)
        return self._source

    def roll(self, about: NewWorker) -> Roll:
        return RemoteRoll(self.remote, about)

    def start_duties(self) -> None:
        """The server has its own."""

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        self.remote.close()

    def _send(self, queue: str, drafts: Sequence[sends.Draft]) -> list[SendResult]:
        if len(drafts) > 1:
            return self.remote.send_batch(queue, drafts)
        [draft] = drafts
        return [self.remote.send_draft(queue, draft)]

    def _make(self, queue: str) -> None:
        try:
            self.remote.queues.put(queue, only_new=True)
        except QueueExists:
            pass  # somebody else was faster
        except Forbidden:
            raise InvalidRequest(
                f"there is no queue {queue!r}, and this key may not make one (role operate)"
            ) from None


def to_wire(draft: Draft) -> sends.Draft:
    given = {name: getattr(draft, name) for name in sends.Draft.__struct_fields__[1:]}
    for name in ("due_at", "expires_at"):
        if given[name] is not None:
            given[name] = moment_of(given[name])
    return sends.Draft(msgspec.Raw(draft.body.encode()), **given)
