"""A server as the backend of an application."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.api import messages
from penstock.api.messages import SendResult
from penstock.api.topics import Published
from penstock.client.backend import Backend, Drafts, Values
from penstock.client.bus.subscription import Publication
from penstock.client.errors import no_transaction
from penstock.client.remote.server import Remote
from penstock.client.remote.source import RemoteSource
from penstock.domain.bus.topic import check_topic
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import (
    Forbidden,
    InvalidRequest,
    QueueExists,
    QueueNotFound,
    TopicNotFound,
)
from penstock.domain.message.draft import Draft
from penstock.ports.clock import Clock
from penstock.worker.application import JobSource


class RemoteBackend(Backend):
    def __init__(self, url: str, *, key: str | None, clock: Clock) -> None:
        self.remote = Remote(url, key=key)
        self.channel = self.remote.channel
        self.clock = clock
        self.limits = None
        self._source: RemoteSource | None = None

    def send(
        self, queue: str, drafts: Drafts, *, tx: object = None, settings: Values | None = None
    ) -> list[SendResult]:
        _reject(tx)
        wanted = [_record(draft) for draft in drafts]
        try:
            return self._send(queue, wanted)
        except QueueNotFound:
            self._create(queue)
            return self._send(queue, wanted)

    def publish(self, wanted: Publication, *, tx: object = None) -> list[Published]:
        _reject(tx)
        topic, topics = check_topic(wanted.topic), self.remote.topics
        drafts = [_record(draft) for draft in wanted.drafts]
        try:
            return topics.publish_batch(topic, drafts, node=wanted.node)
        except TopicNotFound:
            topics.put(topic)
            return topics.publish_batch(topic, drafts, node=wanted.node)

    def complete(self, receipt: str, *, tx: object, result: str | None = None) -> None:
        raise no_transaction()

    def source(self) -> JobSource:
        if self._source is None:
            self._source = RemoteSource(self.remote)
        return self._source

    def start_duties(self) -> None:
        """Nothing to do: the server runs its own duties."""

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        self.remote.close()

    def _send(self, queue: str, drafts: Sequence[messages.Draft]) -> list[SendResult]:
        if len(drafts) > 1:
            return self.remote.send_batch(queue, drafts)
        [draft] = drafts
        return [self.remote.send_draft(queue, draft)]

    def _create(self, queue: str) -> None:
        try:
            self.remote.queues.put(queue, only_new=True)
        except QueueExists:
            pass  # another client was faster
        except Forbidden:
            raise InvalidRequest(
                f"queue {queue!r} does not exist, and this key may not create it (role operate)"
            ) from None


def _reject(tx: object) -> None:
    if tx is not None:
        raise no_transaction()


def _record(draft: Draft) -> messages.Draft:
    given = {name: getattr(draft, name) for name in messages.Draft.__struct_fields__[1:]}
    for name in ("due_at", "expires_at"):
        if given[name] is not None:
            given[name] = moment_of(given[name])
    return messages.Draft(msgspec.Raw(draft.body.encode()), **given)
